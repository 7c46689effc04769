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
  # machine. The number of a site that has left is passed over.
  numbers = { for name, r in local.regions : name => slice([for n in range(1, 21) : n if !contains(r.gone, n)], 0, r.sites) }
  sites = { for name, r in local.regions : name => {
    for n in local.numbers[name] : "${name}-${n}" => { address = cidrhost(r.cidr, 9 + n), zone = r.zones[(n - 1) % length(r.zones)] }
  } }
  addresses = { for name, sites in local.sites : name => { for site, s in sites : site => s.address } }
  all       = merge(values(local.addresses)...)
  members   = sort(keys(local.all))
  founders  = sort(keys(terraform_data.founders.output))
  seeds = [for name in coalesce(var.seeds, local.founders) :
    lookup(local.all, name, lookup(terraform_data.founders.output, name, null))
  ]
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

  project               = var.project
  cluster               = var.cluster
  region                = each.key
  zones                 = each.value.zones
  network               = google_compute_network.cluster.id
  cidr                  = each.value.cidr
  cluster_cidr          = var.network_cidr
  sites                 = local.sites[each.key]
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
  site_accounts         = { for site, _ in local.addresses[each.key] : site => google_service_account.site[site].email }
  app_manager_account   = google_service_account.app_manager[each.key].email
  protect_data          = var.protect_data
  notification_channels = var.notification_channels
}
