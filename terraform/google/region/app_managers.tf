# App managers: a group of machines that are all alike, behind a load balancer
# that hands packets on as they are. TLS ends in the app manager.

resource "google_compute_instance_template" "app_manager" {
  name_prefix  = "${substr(local.name, 0, 37)}-"
  description  = "App managers of ${var.cluster} in ${var.region}."
  region       = var.region
  machine_type = var.app_manager_machine.type
  tags         = [local.tags.app_manager]
  labels       = { cluster = var.cluster, part = "app-manager" }

  disk {
    source_image = var.image
    boot         = true
    auto_delete  = true
    disk_size_gb = 20
  }

  network_interface {
    subnetwork = google_compute_subnetwork.region.id
  }

  service_account {
    email  = var.app_manager_account
    scopes = ["https://www.googleapis.com/auth/cloud-platform"]
  }

  shielded_instance_config {
    enable_secure_boot          = true
    enable_vtpm                 = true
    enable_integrity_monitoring = true
  }

  metadata = {
    user-data              = module.needs.app_manager_user_data
    block-project-ssh-keys = "true"
  }

  lifecycle {
    create_before_destroy = true
  }
}

resource "google_compute_region_health_check" "app_manager" {
  name                = "${local.name}-app-manager"
  region              = var.region
  check_interval_sec  = 5
  timeout_sec         = 3
  healthy_threshold   = 1
  unhealthy_threshold = 3

  # By TCP: the checker has no certificate to show.
  tcp_health_check {
    port = module.needs.listeners.http
  }
}

resource "google_compute_region_instance_group_manager" "app_manager" {
  name                      = "${local.name}-app-manager"
  region                    = var.region
  base_instance_name        = "${local.name}-am"
  distribution_policy_zones = var.zones
  # With a scaler the number is the scaler's.
  target_size = var.app_managers_max > var.app_managers ? null : var.app_managers

  version {
    instance_template = google_compute_instance_template.app_manager.self_link
  }

  named_port {
    name = "http"
    port = module.needs.listeners.http
  }

  auto_healing_policies {
    health_check      = google_compute_region_health_check.app_manager.id
    initial_delay_sec = 300
  }

  update_policy {
    type                         = "PROACTIVE"
    minimal_action               = "REPLACE"
    instance_redistribution_type = "PROACTIVE"
    max_surge_fixed              = length(var.zones)
    max_unavailable_fixed        = 0
  }

  depends_on = [google_compute_firewall.rule, google_compute_router_nat.region]
}

resource "google_compute_region_autoscaler" "app_manager" {
  count = var.app_managers_max > var.app_managers ? 1 : 0

  name   = "${local.name}-app-manager"
  region = var.region
  target = google_compute_region_instance_group_manager.app_manager.id

  autoscaling_policy {
    min_replicas    = var.app_managers
    max_replicas    = var.app_managers_max
    cooldown_period = 120

    cpu_utilization {
      target = 0.6
    }
  }
}

resource "google_compute_region_backend_service" "app_manager" {
  name                            = "${local.name}-app-manager"
  region                          = var.region
  protocol                        = "TCP"
  load_balancing_scheme           = var.public ? "EXTERNAL" : "INTERNAL"
  health_checks                   = [google_compute_region_health_check.app_manager.id]
  connection_draining_timeout_sec = 60

  backend {
    group          = google_compute_region_instance_group_manager.app_manager.instance_group
    balancing_mode = "CONNECTION"
  }
}

resource "google_compute_address" "app_manager" {
  name         = "${local.name}-app-manager"
  region       = var.region
  address_type = var.public ? "EXTERNAL" : "INTERNAL"
  subnetwork   = var.public ? null : google_compute_subnetwork.region.id
}

resource "google_compute_forwarding_rule" "app_manager" {
  name                  = "${local.name}-app-manager"
  region                = var.region
  load_balancing_scheme = var.public ? "EXTERNAL" : "INTERNAL"
  ip_address            = google_compute_address.app_manager.id
  ip_protocol           = "TCP"
  ports                 = [for _, port in module.needs.listeners : tostring(port)]
  backend_service       = google_compute_region_backend_service.app_manager.id
  network               = var.public ? null : var.network
  subnetwork            = var.public ? null : google_compute_subnetwork.region.id
  # Clients of other regions of the network may come as well.
  allow_global_access = var.public ? null : true
}
