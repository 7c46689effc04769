# Sites: each, and each further node of a site, has a machine, a disk and an address of
# its own. The disk and the address stay when the machine is made anew.

resource "google_compute_address" "site" {
  for_each = var.sites

  name         = "${var.cluster}-${each.key}"
  region       = var.region
  address_type = "INTERNAL"
  purpose      = "GCE_ENDPOINT"
  subnetwork   = google_compute_subnetwork.region.id
  address      = each.value.address
}

resource "google_compute_disk" "site" {
  for_each = var.sites

  name   = "${var.cluster}-${each.key}"
  zone   = each.value.zone
  type   = var.site_machine.disk_type
  size   = var.site_machine.disk_size
  labels = { cluster = var.cluster, part = "site" }

  lifecycle {
    # It holds the books: what is on it cannot be told from other sites.
    prevent_destroy = var.protect_data
  }
}

resource "google_compute_instance" "site" {
  for_each = var.sites

  name                      = "${var.cluster}-${each.key}"
  description               = "Site ${each.key} of ${var.cluster}."
  zone                      = google_compute_disk.site[each.key].zone
  machine_type              = var.site_machine.type
  tags                      = [local.tags.site]
  labels                    = { cluster = var.cluster, part = "site" }
  allow_stopping_for_update = true
  deletion_protection       = false

  boot_disk {
    initialize_params {
      image = var.image
      size  = 20
    }
  }

  attached_disk {
    source      = google_compute_disk.site[each.key].id
    device_name = "samya-data"
  }

  network_interface {
    subnetwork = google_compute_subnetwork.region.id
    network_ip = google_compute_address.site[each.key].address
  }

  service_account {
    email  = var.site_accounts[each.key]
    scopes = ["https://www.googleapis.com/auth/cloud-platform"]
  }

  shielded_instance_config {
    enable_secure_boot          = true
    enable_vtpm                 = true
    enable_integrity_monitoring = true
  }

  metadata = {
    user-data              = module.needs.site_user_data[each.key]
    block-project-ssh-keys = "true"
  }

  lifecycle {
    # It is read at a machine's first start alone. Sites get a new one by a new
    # machine, one site after the other: docs/deploy-google.md.
    ignore_changes = [metadata["user-data"], boot_disk[0].initialize_params[0].image]
  }

  depends_on = [google_compute_firewall.rule, google_compute_router_nat.region]
}
