# A cluster on Google Cloud: one network over all regions, whose traffic between
# regions stays within the cloud, and in each region sites, app managers behind a
# load balancer, and what they may see of keys and certificates.

provider "google" {
  project = var.project
}

locals {
  regions = { for name, r in var.regions : name => merge(r, {
    cidr  = cidrsubnet(var.network_cidr, 4, r.network)
    zones = [for z in r.zones : "${name}-${z}"]
  }) }
  # Addresses are chosen, not found: a site keeps its own whatever becomes of its
  # machine. The number of a site that has left is passed over. The nodes of a site go
  # round the zones; the first has the place of a site of a single machine.
  numbers = { for name, r in local.regions : name => slice([for n in range(1, 21) : n if !contains(r.gone, n)], 0, r.sites) }
  machines = { for name, r in local.regions : name => merge([for n in local.numbers[name] : {
    for k, node in slice(["a", "b", "c"], 0, r.nodes) : "${name}-${n}${k == 0 ? "" : "-${node}"}" => {
      site    = "${name}-${n}"
      node    = r.nodes > 1 ? node : ""
      address = cidrhost(r.cidr, 9 + n + 20 * k)
      zone    = r.zones[(n - 1 + k) % length(r.zones)]
    }
  }]...) }
  # The members of etcd that a region is to have, at the end of the region's addresses: the
  # cloud itself takes those at the beginning.
  etcd = { for name, r in local.regions : name => {
    for i in range(r.nodes > 1 && r.sites > 0 && length(r.etcd_endpoints) == 0 ? 3 : 0) : "etcd-${name}-${i + 1}" => {
      address = cidrhost(r.cidr, -4 - i)
      zone    = r.zones[i % length(r.zones)]
    }
  } }
  all_machines = merge(values(local.machines)...)
  all          = { for name, m in local.all_machines : name => m.address if m.site == name }
  all_etcd     = merge(values(local.etcd)...)
  members      = sort(keys(local.all))
  founders     = sort(keys(terraform_data.founders.output))
  seeds = flatten([for name in coalesce(var.seeds, local.founders) : contains(keys(local.all), name) ?
    [for _, m in local.all_machines : m.address if m.site == name] : [lookup(terraform_data.founders.output, name, null)]
  ])
}

# The founders and their addresses, as of the first apply. A site that comes later joins: it
# would found a cluster of its own if it were named among them.
resource "terraform_data" "founders" {
  input = { for name in coalesce(var.founders, local.members) : name => local.all[name] }

  lifecycle {
    ignore_changes = [input]
  }
}

resource "google_compute_network" "cluster" {
  name                    = var.cluster
  description             = "The samya cluster ${var.cluster}: all regions."
  auto_create_subnetworks = false
  routing_mode            = "GLOBAL"
}

module "region" {
  source   = "./region"
  for_each = local.regions

  project      = var.project
  cluster      = var.cluster
  region       = each.key
  zones        = each.value.zones
  network      = google_compute_network.cluster.id
  cidr         = each.value.cidr
  cluster_cidr = var.network_cidr
  sites        = local.machines[each.key]
  etcd = each.value.nodes == 1 ? null : {
    endpoints = length(each.value.etcd_endpoints) > 0 ? each.value.etcd_endpoints : [for _, m in local.etcd[each.key] : "${m.address}:2379"]
    members   = local.etcd[each.key]
    machine   = var.etcd
  }
  founders              = local.founders
  seeds                 = local.seeds
  app_managers          = each.value.app_managers
  app_managers_max      = coalesce(each.value.app_managers_max, each.value.app_managers)
  release               = var.release
  client_cidrs          = var.client_cidrs
  monitoring_cidrs      = var.monitoring_cidrs
  public                = var.public
  site_machine          = var.site_machine
  app_manager_machine   = var.app_manager_machine
  image                 = var.image
  site_settings         = var.site_settings
  app_manager_settings  = var.app_manager_settings
  site_accounts         = { for name, m in local.machines[each.key] : name => google_service_account.site[m.site].email }
  etcd_accounts         = { for name, _ in local.etcd[each.key] : name => google_service_account.etcd[name].email }
  app_manager_account   = google_service_account.app_manager[each.key].email
  protect_data          = var.protect_data
  notification_channels = var.notification_channels
}
