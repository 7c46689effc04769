# A cluster of several regions on this machine, as processes. Nothing is
# downloaded: the one kind of resource is built in, and the work is done by
# `samya local`, which says itself what it changes.

locals {
  reserved_settings = [
    "access-file", "await-log", "cluster", "config", "data", "etcd-ca", "etcd-cert", "etcd-endpoints", "etcd-key", "etcd-password-file",
    "etcd-user", "exit-with-stdin", "gossip", "gossip-key-file", "grpc", "help", "http", "insecure", "join", "log", "members",
    "name", "node", "region", "tls-ca", "tls-cert", "tls-crl", "tls-key",
  ]

  directory = abspath(var.directory)
  samya     = abspath(var.samya)
  scheme    = var.tls ? "https" : "http"

  # What samya has written of the cluster.
  state = try(jsondecode(file("${local.directory}/run.json")), { boot = "", processes = {} })

  # The same layout as devcluster/local makes of the same variables. The name of a site that
  # has left is never used again, and the region of such a site keeps its place.
  gone   = concat(try(local.state.gone, []), try(local.state.leaving, []))
  out    = concat(local.gone, local.replaced, local.lost)
  places = sort(distinct(concat(keys(var.regions), [for name in local.gone : regex("^(.*)-[0-9]+$", name)[0]])))
  place  = { for i, region in local.places : region => i }
  # Of the sites to be replaced, those that there are: others have left.
  known    = keys(local.state.processes)
  replaced = [for name in var.replace : name if contains(local.known, name)]
  lost     = [for name in var.lost : name if contains(local.known, name)]
  free = { for region, _ in var.regions : region => [
    for n in range([10, 4, 2][var.regions[region].nodes - 1]) : n if !contains(local.out, "${region}-${n + 1}")
  ] }
  regions = sort(keys(var.regions))
  sites = merge([for region in local.regions : {
    for n in slice(local.free[region], 0, min(var.regions[region].sites, length(local.free[region]))) : "${region}-${n + 1}" => {
      region = region
      grpc   = "127.0.0.1:${var.site_port + local.place[region] * 10 + n}"
      http   = "127.0.0.1:${var.site_port + 100 + local.place[region] * 10 + n}"
    }
  }]...)
  app_managers = merge([for region in local.regions : {
    for n in range(var.regions[region].app_managers) : "am-${region}-${n + 1}" => {
      region = region
      http   = "127.0.0.1:${var.app_manager_port + local.place[region] * 10 + n}"
      grpc   = "127.0.0.1:${var.app_manager_port + 100 + local.place[region] * 10 + n}"
    }
  }]...)

  # The further nodes of sites, and the members of etcd of regions with such nodes.
  nodes = flatten([for name, site in local.sites : [
    for n in range(1, var.regions[site.region].nodes) : "${name}-${["a", "b", "c"][n]}"
  ]])
  etcd = flatten([for region in local.regions : [
    for n in ["a", "b", "c"] : "${region}-etcd-${n}"
  ] if var.regions[region].nodes > 1 && var.regions[region].sites > 0])

  # Whether each process runs: the same process id, begun at the same instant of
  # the same boot, and not about to be reaped. `file` in `try`: a process may end
  # while it is looked at.
  boot = try(trimspace(file("/proc/sys/kernel/random/boot_id")), "")
  runs = { for name, run in local.state.processes : name => {
    number = run.run
    alive = local.boot == local.state.boot && try(
      regex("^[^(]*\\(.*\\) ([^ZX]) (?:\\S+ ){18}(\\S+) ", file("/proc/${run.pid}/stat"))[1] == run.start, false
    )
  } }

  # The run that each process has to be in. A dead one has to be in a later one
  # than it was, which is what makes it a change of the plan; once it was started
  # under that number, there is nothing left to change.
  wanted = { for name in concat(keys(local.sites), local.nodes, local.etcd, keys(local.app_managers)) :
    name => try(local.runs[name].alive ? local.runs[name].number : local.runs[name].number + 1, 1)
  }
}

# The directory, which goes last.
resource "terraform_data" "directory" {
  input = {
    directory = local.directory
    samya     = local.samya
  }
  triggers_replace = local.directory

  provisioner "local-exec" {
    when        = destroy
    interpreter = [self.input.samya, "local", "down", "--dir"]
    command     = self.input.directory
  }
}

# The sites, for the plan to show which join and which leave. The next resource does the
# work.
resource "terraform_data" "site" {
  for_each = local.sites
  input    = each.value
}

# The processes. Replacing this resource ends none of them: `samya local apply`
# changes those that differ, and leaves the others as they run. A site that is too many
# hands over what it holds before it ends.
resource "terraform_data" "cluster" {
  triggers_replace = {
    directory            = local.directory
    cluster              = var.cluster
    program              = filesha256(var.samya)
    tls                  = var.tls
    sites                = local.sites
    app_managers         = local.app_managers
    site_settings        = var.site_settings
    app_manager_settings = var.app_manager_settings
    runs                 = local.wanted
  }

  provisioner "local-exec" {
    interpreter = [local.samya, "local", "apply", "--timeout=1h"]
    command = jsonencode({
      dir                  = local.directory
      samya                = local.samya
      etcd                 = var.etcd
      cluster              = var.cluster
      tls                  = var.tls
      regions              = var.regions
      site_settings        = var.site_settings
      app_manager_settings = var.app_manager_settings
      site_port            = var.site_port
      app_manager_port     = var.app_manager_port
      runs                 = local.wanted
      drain                = true
      leave                = local.replaced
      lost                 = local.lost
    })
  }

  lifecycle {
    precondition {
      condition     = alltrue([for region, r in var.regions : r.sites <= length(local.free[region])])
      error_message = "A region has at most 10 sites ever, 4 of two nodes and 2 of three, and those that have left count."
    }
  }

  depends_on = [terraform_data.directory]
}
