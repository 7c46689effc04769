# What the cloud itself sees of the machines. samya's own metrics are read by
# Prometheus, whose targets are an output.

locals {
  # Of what the dashboard shows: a title, a metric, how points are put together.
  charts = [
    { title = "Processors of sites", metric = "compute.googleapis.com/instance/cpu/utilization", align = "ALIGN_MEAN", of = "site" },
    { title = "Writes to the disks of sites", metric = "compute.googleapis.com/instance/disk/write_ops_count", align = "ALIGN_RATE", of = "site" },
    { title = "Processors of app managers", metric = "compute.googleapis.com/instance/cpu/utilization", align = "ALIGN_MEAN", of = "app-manager" },
    { title = "Bytes received by app managers", metric = "compute.googleapis.com/instance/network/received_bytes_count", align = "ALIGN_RATE", of = "app-manager" },
  ]
}

resource "google_monitoring_dashboard" "machines" {
  dashboard_json = jsonencode({
    displayName = "samya ${var.cluster}: machines"
    mosaicLayout = {
      columns = 12
      tiles = [for i, c in local.charts : {
        xPos = i % 2 * 6, yPos = floor(i / 2) * 4, width = 6, height = 4
        widget = {
          title = c.title
          xyChart = { dataSets = [{
            plotType = "LINE"
            timeSeriesQuery = { timeSeriesFilter = {
              filter      = "metric.type=\"${c.metric}\" resource.type=\"gce_instance\" metadata.user_labels.cluster=\"${var.cluster}\" metadata.user_labels.part=\"${c.of}\""
              aggregation = { alignmentPeriod = "60s", perSeriesAligner = c.align }
            } }
          }] }
        }
      }]
    }
  })
}

resource "google_monitoring_alert_policy" "site_gone" {
  display_name          = "samya ${var.cluster}: the machine of a site or of etcd is gone"
  combiner              = "OR"
  notification_channels = var.notification_channels

  conditions {
    display_name = "no sign of life for five minutes"

    condition_absent {
      filter   = "metric.type=\"compute.googleapis.com/instance/uptime\" resource.type=\"gce_instance\" metadata.user_labels.cluster=\"${var.cluster}\" metadata.user_labels.part=one_of(\"site\", \"etcd\")"
      duration = "300s"

      aggregations {
        alignment_period   = "60s"
        per_series_aligner = "ALIGN_RATE"
      }
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "What it holds stays on its disk. Apply the configuration again: a new machine takes the disk, the name and the address."
  }
}
