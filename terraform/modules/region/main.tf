# What a region of a cluster needs, in words that every cloud knows: machines with
# names, addresses and what they do at first start, ports between whom, what a
# load balancer does, and which secrets there are. The roots turn it into
# resources of one cloud.

locals {
  reserved_settings = [
    "access-file", "cluster", "config", "data", "exit-with-stdin", "gossip", "gossip-key-file", "grpc", "help", "http",
    "insecure", "join", "members", "name", "region", "tls-ca", "tls-cert", "tls-crl", "tls-key",
  ]

  ports = {
    site        = { grpc = 7001, http = 7101, gossip = 7201 }
    app_manager = { http = 8080, grpc = 8180, gossip = 8280 }
  }
  join = join(",", [for a in var.seeds : "${a}:${local.ports.site.gossip}"])

  # Who may open which ports of whom. `cluster` are all machines of the cluster,
  # `clients` and `monitoring` the networks that the operator names, and
  # `load_balancer` where its checks come from.
  firewall = {
    site-grpc = {
      of  = "site", ports = [local.ports.site.grpc], protocol = "tcp", from = "cluster"
      why = "Sites and app managers ask sites."
    }
    site-gossip-tcp = {
      of  = "site", ports = [local.ports.site.gossip], protocol = "tcp", from = "cluster"
      why = "Gossip, encrypted."
    }
    site-gossip-udp = {
      of  = "site", ports = [local.ports.site.gossip], protocol = "udp", from = "cluster"
      why = "Gossip, encrypted."
    }
    site-metrics = {
      of  = "site", ports = [local.ports.site.http], protocol = "tcp", from = "monitoring"
      why = "Metrics and health of sites."
    }
    app-manager-gossip-tcp = {
      of  = "app_manager", ports = [local.ports.app_manager.gossip], protocol = "tcp", from = "cluster"
      why = "Gossip, encrypted."
    }
    app-manager-gossip-udp = {
      of  = "app_manager", ports = [local.ports.app_manager.gossip], protocol = "udp", from = "cluster"
      why = "Gossip, encrypted."
    }
    app-manager-clients = {
      of  = "app_manager", ports = [local.ports.app_manager.http, local.ports.app_manager.grpc], protocol = "tcp", from = "clients"
      why = "Clients, over TLS."
    }
    app-manager-health = {
      of  = "app_manager", ports = [local.ports.app_manager.http, local.ports.app_manager.grpc], protocol = "tcp", from = "load_balancer"
      why = "Checks of the load balancer."
    }
    app-manager-metrics = {
      of  = "app_manager", ports = [local.ports.app_manager.http], protocol = "tcp", from = "monitoring"
      why = "Metrics and health of app managers."
    }
  }

  # Names of secrets, and the files that they become. A certificate and its key are
  # one secret and one file, so that they are never changed one without the other.
  shared_secrets = {
    "${var.cluster}-ca"         = "ca.pem"
    "${var.cluster}-crl"        = "crl.pem"
    "${var.cluster}-gossip-key" = "gossip.key"
    "${var.cluster}-access"     = "access.yaml"
  }
  site_secrets = { for name, _ in var.addresses :
    name => merge(local.shared_secrets, { "${var.cluster}-tls-${name}" = "site.pem" })
  }
  app_manager_secrets = merge(local.shared_secrets, { "${var.cluster}-tls-am-${var.region}" = "app-manager.pem" })

  secure_flags = { for kind, file in { site = "site.pem", app_manager = "app-manager.pem" } : kind => {
    tls-cert        = "${var.paths.config}/${file}"
    tls-key         = "${var.paths.config}/${file}"
    tls-ca          = "${var.paths.config}/ca.pem"
    tls-crl         = "${var.paths.config}/crl.pem"
    gossip-key-file = "${var.paths.config}/gossip.key"
    access-file     = "${var.paths.config}/access.yaml"
  } }

  # Command lines. ${NAME}, ${ADDRESS} and ${SERVE} are filled in by systemd, from
  # what a machine has found out of itself at its first start.
  site_flags = merge({
    preset     = "wan"
    log-format = "json"
    }, var.site_settings, local.secure_flags.site, {
    name    = "$${NAME}"
    region  = var.region
    cluster = var.cluster
    data    = var.paths.data
    grpc    = "$${ADDRESS}:${local.ports.site.grpc}"
    http    = "$${ADDRESS}:${local.ports.site.http}"
    gossip  = "$${ADDRESS}:${local.ports.site.gossip}"
    join    = local.join
  })
  app_manager_flags = merge({
    preset     = "wan"
    log-format = "json"
    }, var.app_manager_settings, local.secure_flags.app_manager, {
    name    = "$${NAME}"
    region  = var.region
    cluster = var.cluster
    http    = "$${SERVE}:${local.ports.app_manager.http}"
    grpc    = "$${SERVE}:${local.ports.app_manager.grpc}"
    gossip  = "$${ADDRESS}:${local.ports.app_manager.gossip}"
    join    = local.join
  })
  # A founder names all founders at its first start. A later site joins them, and needs a
  # seat: samya member add.
  commands = {
    site        = join(" ", concat([var.paths.program, "site"], [for name, v in local.site_flags : "--${name}=${v}"]))
    founder     = join(" ", concat([var.paths.program, "site"], [for name, v in merge(local.site_flags, { members = join(",", var.founders) }) : "--${name}=${v}"]))
    app_manager = join(" ", concat([var.paths.program, "appmgr"], [for name, v in local.app_manager_flags : "--${name}=${v}"]))
  }

  units = { for kind, command in local.commands : kind => templatefile("${path.module}/templates/samya.service.tftpl", {
    kind    = kind == "founder" ? "site" : kind
    command = command
    paths   = var.paths
  }) }

  # The files that a machine is given. Site machines know who they are; those of a
  # group find it out.
  files = { for kind in ["site", "founder", "app_manager"] : kind => {
    "/etc/systemd/system/samya.service"         = { content = local.units[kind], permissions = "0644" }
    "/etc/systemd/system/samya-secrets.service" = { content = templatefile("${path.module}/templates/samya-secrets.service.tftpl", { paths = var.paths }), permissions = "0644" }
    "/etc/systemd/system/samya-secrets.timer"   = { content = file("${path.module}/templates/samya-secrets.timer"), permissions = "0644" }
    "${var.paths.library}/install"              = { content = templatefile("${path.module}/templates/install.sh.tftpl", { release = var.release, program = var.paths.program }), permissions = "0755" }
    "${var.paths.library}/secrets"              = { content = templatefile("${path.module}/templates/secrets.sh.tftpl", { fetch = var.secrets.fetch, paths = var.paths }), permissions = "0755" }
  } }
  site_files = { for name, address in var.addresses : name => merge(local.files[contains(var.founders, name) ? "founder" : "site"], {
    "${var.paths.library}/disk"      = { content = templatefile("${path.module}/templates/disk.sh.tftpl", { device = var.data_device, data = var.paths.data }), permissions = "0755" }
    "${var.paths.etc}/samya-secrets" = { content = join("", [for id, file in local.site_secrets[name] : "${id} ${file}\n"]), permissions = "0644" }
    "${var.paths.etc}/samya-node"    = { content = "NAME=${name}\nADDRESS=${address}\n", permissions = "0644" }
  }) }
  app_manager_files = merge(local.files.app_manager, {
    "${var.paths.library}/node"      = { content = templatefile("${path.module}/templates/node.sh.tftpl", { serve = var.serve_address, region = var.region, paths = var.paths }), permissions = "0755" }
    "${var.paths.etc}/samya-secrets" = { content = join("", [for id, file in local.app_manager_secrets : "${id} ${file}\n"]), permissions = "0644" }
  })

  cloud_config = {
    site        = { disk = true, node = false, paths = var.paths }
    app_manager = { disk = false, node = true, paths = var.paths }
  }
}
