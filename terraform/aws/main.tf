# A cluster on AWS: in each region a network of its own, all of them peered with
# each other, and in it sites, app managers behind a load balancer, and what they
# may see of keys and certificates.

# Every resource says itself in which region it is.
provider "aws" {
  region = sort(keys(var.regions))[0]

  default_tags {
    tags = { cluster = var.cluster }
  }
}

locals {
  regions = { for name, r in var.regions : name => merge(r, {
    cidr = cidrsubnet(var.network_cidr, 4, r.network)
    # A region's part is cut in eight: four zones of machines, four of load balancers.
    zones = { for i, z in r.zones : "${name}${z}" => {
      private = cidrsubnet(cidrsubnet(var.network_cidr, 4, r.network), 3, i)
      public  = cidrsubnet(cidrsubnet(var.network_cidr, 4, r.network), 3, i + 4)
    } }
  }) }
  # Addresses are chosen, not found: a site keeps its own whatever becomes of its
  # machine. Sites of a region go round its zones. The number of a site that has left is
  # passed over. The nodes of a site go round the zones as well: the first has the place of
  # a site of a single machine, and each time round takes 20 addresses further on.
  numbers = { for name, r in local.regions : name => slice([for n in range(1, 21) : n if !contains(r.gone, n)], 0, r.sites) }
  machines = { for name, r in local.regions : name => merge([for n in local.numbers[name] : {
    for k, node in slice(["a", "b", "c"], 0, r.nodes) : "${name}-${n}${k == 0 ? "" : "-${node}"}" => {
      site    = "${name}-${n}"
      node    = r.nodes > 1 ? node : ""
      zone    = sort(keys(r.zones))[(n - 1 + k) % length(r.zones)]
      address = cidrhost(r.zones[sort(keys(r.zones))[(n - 1 + k) % length(r.zones)]].private, 9 + n + 20 * floor(k / length(r.zones)))
    }
  }]...) }
  # The members of etcd that a region is to have.
  etcd = { for name, r in local.regions : name => {
    for i in range(r.nodes > 1 && r.sites > 0 && length(r.etcd_endpoints) == 0 ? 3 : 0) : "etcd-${name}-${i + 1}" => {
      zone    = sort(keys(r.zones))[i % length(r.zones)]
      address = cidrhost(r.zones[sort(keys(r.zones))[i % length(r.zones)]].private, 4 + i)
    }
  } }
  all_machines = merge(values(local.machines)...)
  all_sites    = { for name, m in local.all_machines : name => m.address if m.site == name }
  founders     = sort(keys(terraform_data.founders.output))
  seeds = flatten([for name in coalesce(var.seeds, local.founders) : contains(keys(local.all_sites), name) ?
    [for _, m in local.all_machines : m.address if m.site == name] : [terraform_data.founders.output[name]]
  ])

  # Each pair of regions once.
  pairs = { for pair in setproduct(keys(local.regions), keys(local.regions)) :
    "${pair[0]}/${pair[1]}" => { from = pair[0], to = pair[1] } if pair[0] != pair[1] && sort(pair)[0] == pair[0]
  }
}

# The founders and their addresses, as of the first apply. A site that comes later joins: it
# would found a cluster of its own if it were named among them.
resource "terraform_data" "founders" {
  input = { for name in coalesce(var.founders, keys(local.all_sites)) : name => local.all_sites[name] }

  lifecycle {
    ignore_changes = [input]
  }
}

module "region" {
  source   = "./region"
  for_each = local.regions

  cluster      = var.cluster
  region       = each.key
  zones        = each.value.zones
  cidr         = each.value.cidr
  cluster_cidr = var.network_cidr
  sites        = local.machines[each.key]
  etcd = each.value.nodes == 1 ? null : {
    endpoints = length(each.value.etcd_endpoints) > 0 ? each.value.etcd_endpoints : [for _, m in local.etcd[each.key] : "${m.address}:2379"]
    members   = local.etcd[each.key]
    machine   = var.etcd
  }
  founders             = local.founders
  seeds                = local.seeds
  app_managers         = each.value.app_managers
  app_managers_max     = coalesce(each.value.app_managers_max, each.value.app_managers)
  release              = var.release
  client_cidrs         = var.client_cidrs
  monitoring_cidrs     = var.monitoring_cidrs
  public               = var.public
  site_machine         = var.site_machine
  app_manager_machine  = var.app_manager_machine
  image                = var.image
  site_settings        = var.site_settings
  app_manager_settings = var.app_manager_settings
  protect_data         = var.protect_data
  alarm_actions        = lookup(var.alarm_actions, each.key, [])
}
