# Places for keys and certificates, and who may read them: each site its own, and
# no other's; nodes of a site share them. What is in them is stored by the operator and never comes into the
# state: docs/deploy-google.md has the commands.

locals {
  # By the account: the account's name for IAM, and the secrets that it reads.
  accounts = merge(
    { for site, m in google_service_account.site : site => m.member },
    { for name, m in google_service_account.etcd : name => m.member },
    { for region, m in google_service_account.app_manager : "am-${region}" => m.member },
  )
  reads = merge(
    merge([for _, m in module.region : { for who, secrets in merge(m.site_secrets, m.etcd_secrets) : who => keys(secrets) }]...),
    { for region, m in module.region : "am-${region}" => keys(m.app_manager_secrets) },
  )
  readers = merge([for who, ids in local.reads : { for id in ids : "${id}/${who}" => { id = id, who = who } }]...)
  secrets = toset([for _, r in local.readers : r.id])
}

resource "google_service_account" "site" {
  for_each = toset(local.members)

  account_id   = "${trimsuffix(substr("${var.cluster}-${each.key}", 0, 21), "-")}-${substr(sha256("${var.cluster}/${each.key}"), 0, 8)}"
  display_name = "Site ${each.key} of ${var.cluster}"
}

resource "google_service_account" "etcd" {
  for_each = local.all_etcd

  account_id   = "${trimsuffix(substr("${var.cluster}-${each.key}", 0, 21), "-")}-${substr(sha256("${var.cluster}/${each.key}"), 0, 8)}"
  display_name = "Member ${each.key} of etcd of ${var.cluster}"
}

resource "google_service_account" "app_manager" {
  for_each = local.regions

  account_id   = "${trimsuffix(substr("${var.cluster}-am-${each.key}", 0, 21), "-")}-${substr(sha256("${var.cluster}/am-${each.key}"), 0, 8)}"
  display_name = "App managers of ${var.cluster} in ${each.key}"
}

resource "google_project_iam_member" "telemetry" {
  for_each = merge([for role in ["roles/logging.logWriter", "roles/monitoring.metricWriter"] : {
    for who, _ in local.reads : "${role}/${who}" => { role = role, who = who }
  }]...)

  project = var.project
  role    = each.value.role
  member  = local.accounts[each.value.who]
}

resource "google_secret_manager_secret" "secret" {
  for_each = local.secrets

  secret_id = each.key
  labels    = { cluster = var.cluster }

  replication {
    auto {}
  }
}

resource "google_secret_manager_secret_iam_member" "reader" {
  for_each = local.readers

  secret_id = google_secret_manager_secret.secret[each.value.id].id
  role      = "roles/secretmanager.secretAccessor"
  member    = local.accounts[each.value.who]
}
