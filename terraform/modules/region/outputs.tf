output "ports" {
  description = "Ports of sites and of app managers."
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

output "app_manager_secrets" {
  description = "The secrets of app managers, and the files that they become."
  value       = local.app_manager_secrets
}

output "site_user_data" {
  description = "What each site's machine does at its first start, for cloud-init."
  value       = { for name, files in local.site_files : name => templatefile("${path.module}/templates/cloud-config.yaml.tftpl", merge(local.cloud_config.site, { files = files })) }
}

output "app_manager_user_data" {
  description = "What every machine of app managers does at its first start, for cloud-init."
  value       = templatefile("${path.module}/templates/cloud-config.yaml.tftpl", merge(local.cloud_config.app_manager, { files = local.app_manager_files }))
}

output "site_files" {
  description = "The files that each site's machine is given, by path."
  value       = local.site_files
}

output "app_manager_files" {
  description = "The files that every machine of app managers is given, by path."
  value       = local.app_manager_files
}
