output "network" {
  description = "Id of the region's network."
  value       = aws_vpc.region.id
}

output "route_tables" {
  description = "For each zone the route table of its machines."
  value       = { for zone, table in aws_route_table.private : zone => table.id }
}

output "address" {
  description = "Name of the load balancer."
  value       = aws_lb.app_manager.dns_name
}

output "listeners" {
  description = "Ports for clients."
  value       = module.needs.listeners
}

output "dashboard" {
  description = "Name of the dashboard."
  value       = aws_cloudwatch_dashboard.machines.dashboard_name
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
