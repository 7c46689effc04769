output "address" {
  description = "Address of the load balancer."
  value       = google_compute_address.app_manager.address
}

output "listeners" {
  description = "Ports for clients."
  value       = module.needs.listeners
}

output "site_secrets" {
  description = "For each site its secrets, and the files that they become."
  value       = module.needs.site_secrets
}

output "etcd_secrets" {
  description = "For each member of etcd its secrets, and the files that they become."
  value       = module.needs.etcd_secrets
}

output "app_manager_secrets" {
  description = "The secrets of app managers, and the files that they become."
  value       = module.needs.app_manager_secrets
}
