output "ports" {
  description = "Ports of sites, of app managers and of etcd."
  value       = local.ports
}

output "firewall" {
  description = "Who may open which ports of whom, and why."
  value       = local.firewall
}

output "listeners" {
  description = "Ports of app managers that the load balancer hands on as they are: TLS ends in the app manager."
  value       = { http = local.ports.app_manager.http, grpc = local.ports.app_manager.grpc }
}

output "site_secrets" {
  description = "For each site its secrets, and the files that they become."
  value       = local.site_secrets
}

output "etcd_secrets" {
  description = "For each member of etcd its secrets, and the files that they become."
  value       = local.etcd_secrets
}

output "app_manager_secrets" {
  description = "The secrets of app managers, and the files that they become."
  value       = local.app_manager_secrets
}

output "site_user_data" {
  description = "What each machine of a site does at its first start, for cloud-init."
  value       = { for name, files in local.site_files : name => templatefile("${path.module}/templates/cloud-config.yaml.tftpl", merge(local.cloud_config.site, { files = files })) }
}

output "etcd_user_data" {
  description = "What the machine of each member of etcd does at its first start, for cloud-init."
  value       = { for name, files in local.etcd_files : name => templatefile("${path.module}/templates/cloud-config.yaml.tftpl", merge(local.cloud_config.etcd, { files = files })) }
}

output "app_manager_user_data" {
  description = "What every machine of app managers does at its first start, for cloud-init."
  value       = templatefile("${path.module}/templates/cloud-config.yaml.tftpl", merge(local.cloud_config.app_manager, { files = local.app_manager_files }))
}

output "site_files" {
  description = "The files that each machine of a site is given, by path."
  value       = local.site_files
}

output "etcd_files" {
  description = "The files that the machine of each member of etcd is given, by path."
  value       = local.etcd_files
}

output "app_manager_files" {
  description = "The files that every machine of app managers is given, by path."
  value       = local.app_manager_files
}
