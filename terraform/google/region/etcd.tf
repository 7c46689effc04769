# The etcd of sites of several nodes: three members in zones of their own if there are
# three. A member keeps disk and address when its machine is made anew, and so its place.

resource "google_compute_address" "etcd" {
  for_each = local.members

  name         = "${var.cluster}-${each.key}"
  region       = var.region
  address_type = "INTERNAL"
  purpose      = "GCE_ENDPOINT"
  subnetwork   = google_compute_subnetwork.region.id
  address      = each.value.address
}

resource "google_compute_disk" "etcd" {
  for_each = local.members

  name   = "${var.cluster}-${each.key}"
  zone   = each.value.zone
  type   = var.etcd.machine.disk_type
  size   = var.etcd.machine.disk_size
  labels = { cluster = var.cluster, part = "etcd" }

  lifecycle {
    # A majority of these disks holds the books of sites.
    prevent_destroy = var.protect_data
  }
}

resource "google_compute_instance" "etcd" {
  for_each = local.members

  name                      = "${var.cluster}-${each.key}"
  description               = "Member ${each.key} of etcd of ${var.cluster}."
  zone                      = google_compute_disk.etcd[each.key].zone
  machine_type              = var.etcd.machine.type
  tags                      = [local.tags.etcd]
  labels                    = { cluster = var.cluster, part = "etcd" }
  allow_stopping_for_update = true
  deletion_protection       = false

  boot_disk {
    initialize_params {
      image = var.image
      size  = 20
    }
  }

  attached_disk {
    source      = google_compute_disk.etcd[each.key].id
    device_name = "samya-data"
  }

  network_interface {
    subnetwork = google_compute_subnetwork.region.id
    network_ip = google_compute_address.etcd[each.key].address
  }

  service_account {
    email  = var.etcd_accounts[each.key]
    scopes = ["https://www.googleapis.com/auth/cloud-platform"]
  }

  shielded_instance_config {
    enable_secure_boot          = true
    enable_vtpm                 = true
    enable_integrity_monitoring = true
  }

  metadata = {
    user-data              = module.needs.etcd_user_data[each.key]
    block-project-ssh-keys = "true"
  }

  lifecycle {
    # It is read at a machine's first start alone. Members get a new one by a new
    # machine, one after the other: terraform/README.md.
    ignore_changes = [metadata["user-data"], boot_disk[0].initialize_params[0].image]
  }

  depends_on = [google_compute_firewall.rule, google_compute_router_nat.region]
}
