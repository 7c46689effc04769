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
  # machine.
  addresses = { for name, r in local.regions : name => {
    for n in range(r.sites) : "${name}-${n + 1}" => cidrhost(r.cidr, 10 + n)
  } }
  members = sort(flatten([for _, sites in local.addresses : keys(sites)]))
  seeds   = [for name in local.members : merge(values(local.addresses)...)[name]]
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
  addresses             = local.addresses[each.key]
  members               = local.members
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
