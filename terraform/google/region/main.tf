# One region of a cluster on Google Cloud.

module "needs" {
  source = "../../modules/region"

  cluster              = var.cluster
  region               = var.region
  addresses            = { for name, s in var.sites : name => s.address }
  nodes                = { for name, s in var.sites : name => { site = s.site, node = s.node } if s.node != "" }
  etcd                 = local.etcd
  founders             = var.founders
  seeds                = var.seeds
  site_settings        = var.site_settings
  app_manager_settings = var.app_manager_settings
  release              = var.release
  data_device          = "/dev/disk/by-id/google-samya-data"
  # Packets come with the load balancer's address in them.
  serve_address = "any"
  secrets       = { fetch = templatefile("${path.module}/fetch.sh.tftpl", { project = var.project }) }
}

locals {
  members = try(var.etcd.members, {})
  etcd = {
    endpoints = try(var.etcd.endpoints, [])
    members   = { for name, m in local.members : name => m.address }
    release   = length(local.members) == 0 ? null : { url = var.etcd.machine.url, sha256 = var.etcd.machine.sha256 }
  }
  name = "${var.cluster}-${var.region}"
  tags = { site = "${var.cluster}-site", app_manager = "${var.cluster}-app-manager", etcd = "${var.cluster}-etcd" }
  # Where checks of Google's load balancers come from.
  health_cidrs = ["35.191.0.0/16", "130.211.0.0/22", "209.85.152.0/22", "209.85.204.0/22"]
  from = {
    cluster       = [var.cluster_cidr]
    clients       = concat([var.cluster_cidr], var.client_cidrs)
    monitoring    = var.monitoring_cidrs
    load_balancer = local.health_cidrs
    # Machines of this region alone.
    site = [for _, s in var.sites : "${s.address}/32"]
    etcd = [for _, m in local.members : "${m.address}/32"]
  }
}

resource "google_compute_subnetwork" "region" {
  name                     = local.name
  description              = "Machines of ${var.cluster} in ${var.region}."
  region                   = var.region
  network                  = var.network
  ip_cidr_range            = var.cidr
  private_ip_google_access = true
}

# Machines have no public address; this is how they fetch the program.
resource "google_compute_router" "region" {
  name    = local.name
  region  = var.region
  network = var.network
}

resource "google_compute_router_nat" "region" {
  name                               = local.name
  region                             = var.region
  router                             = google_compute_router.region.name
  nat_ip_allocate_option             = "AUTO_ONLY"
  source_subnetwork_ip_ranges_to_nat = "LIST_OF_SUBNETWORKS"

  subnetwork {
    name                    = google_compute_subnetwork.region.id
    source_ip_ranges_to_nat = ["PRIMARY_IP_CIDR_RANGE"]
  }
}

# One set of rules for each region, as each may be applied alone.
resource "google_compute_firewall" "rule" {
  for_each = { for name, rule in module.needs.firewall : name => rule if length(local.from[rule.from]) > 0 }

  name               = "${local.name}-${each.key}"
  description        = each.value.why
  network            = var.network
  direction          = "INGRESS"
  source_ranges      = local.from[each.value.from]
  destination_ranges = each.value.of != "app_manager" || each.value.from == "cluster" || each.value.from == "monitoring" || !var.public ? [var.cidr] : null
  target_tags        = [local.tags[each.value.of]]

  allow {
    protocol = each.value.protocol
    ports    = [for p in each.value.ports : tostring(p)]
  }
}
