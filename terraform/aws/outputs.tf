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
  value       = { for name, m in merge(values(local.etcd)...) : name => m.address }
}

output "secrets" {
  description = "For each region the secrets that the operator stores there before machines can start samya, and the files that they become."
  value       = { for name, m in module.region : name => merge(m.app_manager_secrets, concat(values(m.site_secrets), values(m.etcd_secrets))...) }
}

output "dashboards" {
  description = "Where the dashboard of each region's machines is."
  value       = { for name, m in module.region : name => "https://${name}.console.aws.amazon.com/cloudwatch/home?region=${name}#dashboards/dashboard/${m.dashboard}" }
}

output "metrics" {
  description = "Where sites tell their metrics, for Prometheus. App managers come and go; it finds them by their tags."
  value       = [for a in local.seeds : "https://${a}:7101/metrics"]
}
