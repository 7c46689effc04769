output "endpoints" {
  description = "Where app managers serve clients: for each region HTTP and gRPC, both over TLS."
  value = { for name, m in module.region : name => {
    http = "https://${m.address}:${m.listeners.http}"
    grpc = "${m.address}:${m.listeners.grpc}"
  } }
}

output "sites" {
  description = "The sites by name: where they stand, and their private addresses."
  value = merge([for region, sites in local.addresses : {
    for name, address in sites : name => { region = region, address = address }
  }]...)
}

output "secrets" {
  description = "The secrets that the operator stores before machines can start samya, and the files that they become."
  value = merge([for _, m in module.region : merge(
    m.app_manager_secrets, [for _, secrets in m.site_secrets : secrets]...
  )]...)
}

output "dashboard" {
  description = "Where the dashboard of the machines is."
  value       = "https://console.cloud.google.com/monitoring/dashboards?project=${var.project}"
}

output "metrics" {
  description = "Where sites tell their metrics, for Prometheus. App managers come and go; it finds them by their labels."
  value       = [for a in local.seeds : "https://${a}:7101/metrics"]
}
