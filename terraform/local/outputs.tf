output "endpoints" {
  description = "Where app managers serve clients: for each region their HTTP addresses."
  value = { for region in local.regions : region => [
    for name, m in local.app_managers : "${local.scheme}://${m.http}" if m.region == region
  ] }
}

output "grpc_endpoints" {
  description = "Where app managers serve clients over gRPC, for each region."
  value = { for region in local.regions : region => [
    for name, m in local.app_managers : m.grpc if m.region == region
  ] }
}

output "sites" {
  description = "The sites by name: where they stand and listen."
  value       = local.sites
}

output "app_managers" {
  description = "The app managers by name: where they stand and listen."
  value       = local.app_managers
}

output "metrics" {
  description = "Where processes tell their metrics, for Prometheus."
  value       = sort([for _, p in merge(local.sites, local.app_managers) : "${local.scheme}://${p.http}/metrics"])
}

output "directory" {
  description = "Where data and logs are."
  value       = local.directory
}

output "credentials" {
  description = "Files by which an administrator is known and knows the cluster: for --tls-ca, --tls-cert and --tls-key. Null without TLS."
  value = var.tls ? {
    ca          = "${local.directory}/certs/ca.pem"
    certificate = "${local.directory}/certs/client-admin.pem"
    key         = "${local.directory}/certs/client-admin-key.pem"
  } : null
}
