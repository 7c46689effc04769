output "endpoints" {
  description = "Where app managers serve clients: for each region HTTP and gRPC, both over TLS."
  value = { for name, m in module.region : name => {
    http = "https://${m.address}:${m.listeners.http}"
    grpc = "${m.address}:${m.listeners.grpc}"
  } }
}

output "sites" {
  description = "The sites by name: where they stand, and their private addresses: `addresses` are those of all nodes."
  value = merge([for region, machines in local.machines : {
    for name, m in machines : name => {
      region = region, address = m.address, addresses = [for _, n in machines : n.address if n.site == name]
    } if m.site == name
  }]...)
}

output "etcd" {
  description = "The members of etcd by name, and their private addresses."
  value       = { for name, m in local.all_etcd : name => m.address }
}

output "secrets" {
  description = "The secrets that the operator stores before machines can start samya, and the files that they become."
  value = merge([for _, m in module.region : merge(
    m.app_manager_secrets, concat(values(m.site_secrets), values(m.etcd_secrets))...
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
