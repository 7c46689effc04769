resource "google_monitoring_alert_policy" "app_managers" {
  count = var.app_managers > 0 ? 1 : 0

  display_name          = "samya ${var.cluster}: app managers of ${var.region} are too few"
  combiner              = "OR"
  notification_channels = var.notification_channels

  conditions {
    display_name = "fewer machines than wanted, for ten minutes"

    condition_threshold {
      filter          = "metric.type=\"compute.googleapis.com/instance_group/size\" resource.type=\"instance_group\" resource.label.instance_group_name=\"${google_compute_region_instance_group_manager.app_manager.name}\""
      comparison      = "COMPARISON_LT"
      threshold_value = var.app_managers
      duration        = "600s"

      aggregations {
        alignment_period   = "60s"
        per_series_aligner = "ALIGN_MIN"
      }
    }
  }
}
