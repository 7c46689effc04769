# What a region of a cluster needs, in words that every cloud knows: machines with
# names, addresses and what they do at first start, ports between whom, what a
# load balancer does, and which secrets there are. The roots turn it into
# resources of one cloud.

locals {
  reserved_settings = [
    "access-file", "await-log", "cluster", "config", "data", "etcd-ca", "etcd-cert", "etcd-endpoints", "etcd-key", "etcd-password-file",
    "etcd-user", "exit-with-stdin", "gossip", "gossip-key-file", "grpc", "help", "http", "insecure", "join", "log", "members",
    "name", "node", "region", "tls-ca", "tls-cert", "tls-crl", "tls-key",
  ]

  ports = {
    site        = { grpc = 7001, http = 7101, gossip = 7201 }
    app_manager = { http = 8080, grpc = 8180, gossip = 8280 }
    etcd        = { clients = 2379, peers = 2380 }
  }
  # The site of each machine: its own name, but for further nodes of a site.
  site_of = { for machine, _ in var.addresses : machine => try(var.nodes[machine].site, machine) }
  join    = join(",", [for a in var.seeds : "${a}:${local.ports.site.gossip}"])

  # Who may open which ports of whom. `cluster` are all machines of the cluster,
  # `clients` and `monitoring` the networks that the operator names, `load_balancer`
  # where its checks come from, `site` and `etcd` the machines of these kinds alone:
  # whoever writes to etcd owns the tokens.
  firewall = merge(local.etcd_firewall, {
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
  })
  etcd_firewall = { for name, rule in {
    etcd-clients = {
      of  = "etcd", ports = [local.ports.etcd.clients], protocol = "tcp", from = "site"
      why = "Nodes of sites keep their log here."
    }
    etcd-peers = {
      of  = "etcd", ports = [local.ports.etcd.peers], protocol = "tcp", from = "etcd"
      why = "Members of etcd among themselves."
    }
  } : name => rule if length(var.etcd.members) > 0 }

  # Names of secrets, and the files that they become. A certificate and its key are
  # one secret and one file, so that they are never changed one without the other.
  shared_secrets = {
    "${var.cluster}-ca"         = "ca.pem"
    "${var.cluster}-crl"        = "crl.pem"
    "${var.cluster}-gossip-key" = "gossip.key"
    "${var.cluster}-access"     = "access.yaml"
  }
  # The authority of etcd is another one, so that no other certificate opens etcd.
  etcd_ca = { "${var.cluster}-etcd-ca" = "etcd-ca.pem" }
  site_secrets = { for name in distinct([for machine, _ in var.addresses : local.site_of[machine]]) :
    name => merge(local.shared_secrets, { "${var.cluster}-tls-${name}" = "site.pem" }, contains(values(var.nodes)[*].site, name) ?
    merge(local.etcd_ca, { "${var.cluster}-tls-${name}-etcd" = "etcd.pem" }) : {})
  }
  etcd_secrets        = { for name, _ in var.etcd.members : name => merge(local.etcd_ca, { "${var.cluster}-tls-${name}" = "member.pem" }) }
  app_manager_secrets = merge(local.shared_secrets, { "${var.cluster}-tls-am-${var.region}" = "app-manager.pem" })

  secure_flags = { for kind, file in { site = "site.pem", app_manager = "app-manager.pem" } : kind => {
    tls-cert        = "${var.paths.config}/${file}"
    tls-key         = "${var.paths.config}/${file}"
    tls-ca          = "${var.paths.config}/ca.pem"
    tls-crl         = "${var.paths.config}/crl.pem"
    gossip-key-file = "${var.paths.config}/gossip.key"
    access-file     = "${var.paths.config}/access.yaml"
  } }

  # Command lines. ${NAME}, ${ADDRESS}, ${SERVE}, ${NODE}, ${AWAIT} and ${STATE} are filled
  # in by systemd, from what a machine is told, or has found out of itself at its first start.
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
  # The node a alone begins the log of a site, perhaps with the site's data of before.
  node_flags = merge({
    log            = "etcd"
    node           = "$${NODE}"
    await-log      = "$${AWAIT}"
    etcd-endpoints = join(",", var.etcd.endpoints)
    etcd-ca        = "${var.paths.config}/etcd-ca.pem"
    etcd-cert      = "${var.paths.config}/etcd.pem"
    etcd-key       = "${var.paths.config}/etcd.pem"
  }, length(var.etcd.members) > 0 ? {} : { etcd-keep-history = "true" })
  # The timings are for members within a region. The active nodes compact etcd each minute;
  # etcd itself does so if no node runs.
  etcd_flags = merge({
    name                        = "$${NAME}"
    data-dir                    = "${var.paths.etcd_data}/data"
    initial-cluster             = join(",", [for name, address in var.etcd.members : "${name}=https://${address}:${local.ports.etcd.peers}"])
    initial-cluster-state       = "$${STATE}"
    initial-cluster-token       = "${var.cluster}-${var.region}"
    listen-client-urls          = "https://$${ADDRESS}:${local.ports.etcd.clients}"
    advertise-client-urls       = "https://$${ADDRESS}:${local.ports.etcd.clients}"
    listen-peer-urls            = "https://$${ADDRESS}:${local.ports.etcd.peers}"
    initial-advertise-peer-urls = "https://$${ADDRESS}:${local.ports.etcd.peers}"
    heartbeat-interval          = "50"
    election-timeout            = "500"
    quota-backend-bytes         = "8589934592"
    auto-compaction-mode        = "periodic"
    auto-compaction-retention   = "5m"
    }, merge([for of in ["", "peer-"] : {
      "${of}client-cert-auth" = "true"
      "${of}trusted-ca-file"  = "${var.paths.config}/etcd-ca.pem"
      "${of}cert-file"        = "${var.paths.config}/member.pem"
      "${of}key-file"         = "${var.paths.config}/member.pem"
  }]...))
  # A founder names all founders at its first start. A later site joins them, and needs a
  # seat: samya member add.
  founding = { members = join(",", var.founders) }
  commands = { for kind, run in {
    site          = { program = "${var.paths.program} site", flags = local.site_flags }
    founder       = { program = "${var.paths.program} site", flags = merge(local.site_flags, local.founding) }
    node          = { program = "${var.paths.program} site", flags = merge(local.site_flags, local.node_flags) }
    founding_node = { program = "${var.paths.program} site", flags = merge(local.site_flags, local.node_flags, local.founding) }
    app_manager   = { program = "${var.paths.program} appmgr", flags = local.app_manager_flags }
    etcd          = { program = var.paths.etcd, flags = local.etcd_flags }
  } : kind => join(" ", concat([run.program], [for name, v in run.flags : "--${name}=${v}"])) }

  # Where a machine of a kind keeps its state, which is nowhere for app managers.
  data = { app_manager = "", etcd = var.paths.etcd_data }

  units = { for kind, command in local.commands : kind => templatefile("${path.module}/templates/samya.service.tftpl", {
    what    = contains(keys(local.data), kind) ? replace(kind, "_", " ") : "site"
    data    = lookup(local.data, kind, var.paths.data)
    command = command
    paths   = var.paths
  }) }
  # What a machine installs: a program, its name, the release that has it, and tools for
  # operators that an archive may have beside it.
  programs = { for kind, _ in local.commands : kind => kind == "etcd" ?
    { name = "etcd", tools = ["etcdctl"], to = var.paths.etcd, release = try(coalesce(var.etcd.release, var.release), var.release) } :
    { name = "samya", tools = [], to = var.paths.program, release = var.release }
  }

  # The files that a machine is given. Machines of sites and of etcd know who they are;
  # those of a group find it out.
  files = { for kind, unit in local.units : kind => {
    "/etc/systemd/system/${local.services[kind]}" = { content = unit, permissions = "0644" }
    "/etc/systemd/system/samya-secrets.service"   = { content = templatefile("${path.module}/templates/samya-secrets.service.tftpl", { paths = var.paths }), permissions = "0644" }
    "/etc/systemd/system/samya-secrets.timer"     = { content = file("${path.module}/templates/samya-secrets.timer"), permissions = "0644" }
    "${var.paths.library}/install"                = { content = templatefile("${path.module}/templates/install.sh.tftpl", local.programs[kind]), permissions = "0755" }
    "${var.paths.library}/secrets"                = { content = templatefile("${path.module}/templates/secrets.sh.tftpl", { fetch = var.secrets.fetch, paths = var.paths }), permissions = "0755" }
  } }
  services = { for kind, _ in local.units : kind => kind == "etcd" ? "etcd.service" : "samya.service" }
  disk = { for kind in ["site", "etcd"] : kind => {
    "${var.paths.library}/disk" = { content = templatefile("${path.module}/templates/disk.sh.tftpl", { device = var.data_device, data = lookup(local.data, kind, var.paths.data) }), permissions = "0755" }
  } }
  kinds = { for name, site in local.site_of : name => contains(var.founders, site) ?
    (contains(keys(var.nodes), name) ? "founding_node" : "founder") : (contains(keys(var.nodes), name) ? "node" : "site")
  }
  site_files = { for name, address in var.addresses : name => merge(local.files[local.kinds[name]], local.disk.site, {
    "${var.paths.etc}/samya-secrets" = { content = join("", [for id, file in local.site_secrets[local.site_of[name]] : "${id} ${file}\n"]), permissions = "0644" }
    "${var.paths.etc}/samya-node" = { content = join("", concat(["NAME=${local.site_of[name]}\n", "ADDRESS=${address}\n"],
    [for m in [try(var.nodes[name], null)] : "NODE=${m.node}\nAWAIT=${m.node != "a"}\n" if m != null])), permissions = "0644" }
  }) }
  # A member whose disk is lost gets the state "existing": terraform/README.md.
  etcd_files = { for name, address in var.etcd.members : name => merge(local.files.etcd, local.disk.etcd, {
    "${var.paths.etc}/samya-secrets" = { content = join("", [for id, file in local.etcd_secrets[name] : "${id} ${file}\n"]), permissions = "0644" }
    "${var.paths.etc}/samya-node"    = { content = "NAME=${name}\nADDRESS=${address}\nSTATE=new\n", permissions = "0644" }
  }) }
  app_manager_files = merge(local.files.app_manager, {
    "${var.paths.library}/node"      = { content = templatefile("${path.module}/templates/node.sh.tftpl", { serve = var.serve_address, region = var.region, paths = var.paths }), permissions = "0755" }
    "${var.paths.etc}/samya-secrets" = { content = join("", [for id, file in local.app_manager_secrets : "${id} ${file}\n"]), permissions = "0644" }
  })

  cloud_config = {
    site        = { disk = true, node = false, service = "samya.service", paths = var.paths }
    app_manager = { disk = false, node = true, service = "samya.service", paths = var.paths }
    etcd        = { disk = true, node = false, service = "etcd.service", paths = var.paths }
  }
}
