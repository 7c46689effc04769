# Places for keys and certificates, and who may read them: each site its own, and
# no other's; nodes of a site share them. What is in them is stored by the operator and never comes into the
# state: docs/deploy-aws.md has the commands.

locals {
  app_managers = "am-${var.region}"
  reads = merge(
    { for who, secrets in merge(module.needs.site_secrets, module.needs.etcd_secrets) : who => keys(secrets) },
    { (local.app_managers) = keys(module.needs.app_manager_secrets) },
  )
}

resource "aws_secretsmanager_secret" "secret" {
  for_each = toset(flatten(values(local.reads)))

  region      = var.region
  name        = each.key
  description = "Of the samya cluster ${var.cluster}; its value is stored by the operator."

  # A name that waits for its deletion cannot be made again, for 30 days by default: an
  # apply after a destroy would fail. The operator has the values, or issues new ones.
  recovery_window_in_days = 0
}

resource "aws_iam_role" "machine" {
  for_each = local.reads

  name        = "${var.cluster}-${each.key}"
  description = "Machines of ${var.cluster}: ${each.key}."
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ec2.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy" "read" {
  for_each = local.reads

  name = "read-secrets"
  role = aws_iam_role.machine[each.key].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect   = "Allow"
      Action   = "secretsmanager:GetSecretValue"
      Resource = [for id in each.value : aws_secretsmanager_secret.secret[id].arn]
    }]
  })
}

resource "aws_iam_instance_profile" "machine" {
  for_each = local.reads

  name = "${var.cluster}-${each.key}"
  role = aws_iam_role.machine[each.key].name
}
