# One region of a cluster on AWS.

module "needs" {
  source = "../../modules/region"

  cluster              = var.cluster
  region               = var.region
  addresses            = { for name, s in var.sites : name => s.address }
  nodes                = { for name, s in var.sites : name => { site = s.site, node = s.node } if s.node != "" }
  etcd                 = local.etcd
  founders             = var.founders
  seeds                = var.seeds
  site_settings        = var.site_settings
  app_manager_settings = var.app_manager_settings
  release              = var.release
  # Where the image's udev rules put the disk that is attached under this name.
  data_device = "/dev/sdf"
  secrets     = { fetch = templatefile("${path.module}/fetch.sh.tftpl", { region = var.region }) }
}

locals {
  members = try(var.etcd.members, {})
  etcd = {
    endpoints = try(var.etcd.endpoints, [])
    members   = { for name, m in local.members : name => m.address }
    release   = length(local.members) == 0 ? null : { url = var.etcd.machine.url, sha256 = var.etcd.machine.sha256 }
  }
  name  = "${var.cluster}-${var.region}"
  zones = sort(keys(var.zones))
  # Who may open ports: networks, and the load balancer, whose checks come from its
  # own addresses.
  from = {
    cluster       = [var.cluster_cidr]
    clients       = distinct(concat([var.cluster_cidr], var.client_cidrs))
    monitoring    = var.monitoring_cidrs
    load_balancer = [for _, z in var.zones : var.public ? z.public : z.private]
  }
  # A rule for each port and network, or group of machines, once, whatever it is for.
  openings = flatten([for rule in module.needs.firewall : [for port in rule.ports : [
    for from in lookup(local.from, rule.from, [rule.from]) : {
      of = rule.of, protocol = rule.protocol, port = port, from = from, group = !contains(keys(local.from), rule.from), why = rule.why
    }
  ]]])
  rules = { for o in local.openings : "${o.of}/${o.protocol}/${o.port}/${o.from}" => o... }
}

data "aws_ami" "image" {
  region      = var.region
  most_recent = true
  owners      = [var.image.owner]

  filter {
    name   = "name"
    values = [var.image.name]
  }
}

resource "aws_vpc" "region" {
  region               = var.region
  cidr_block           = var.cidr
  enable_dns_support   = true
  enable_dns_hostnames = true
  tags                 = { Name = local.name }
}

# Machines are in private subnets; load balancers and the way out in public ones.
resource "aws_subnet" "private" {
  for_each = var.zones

  region            = var.region
  vpc_id            = aws_vpc.region.id
  availability_zone = each.key
  cidr_block        = each.value.private
  tags              = { Name = "${local.name} private ${each.key}" }
}

resource "aws_subnet" "public" {
  for_each = var.zones

  region            = var.region
  vpc_id            = aws_vpc.region.id
  availability_zone = each.key
  cidr_block        = each.value.public
  tags              = { Name = "${local.name} public ${each.key}" }
}

resource "aws_internet_gateway" "region" {
  region = var.region
  vpc_id = aws_vpc.region.id
  tags   = { Name = local.name }
}

resource "aws_eip" "way_out" {
  region = var.region
  domain = "vpc"
  tags   = { Name = "${local.name} way out" }

  depends_on = [aws_internet_gateway.region]
}

# One for the region: it is for fetching the program and secrets alone.
resource "aws_nat_gateway" "region" {
  region        = var.region
  allocation_id = aws_eip.way_out.id
  subnet_id     = aws_subnet.public[local.zones[0]].id
  tags          = { Name = local.name }
}

resource "aws_route_table" "public" {
  region = var.region
  vpc_id = aws_vpc.region.id
  tags   = { Name = "${local.name} public" }
}

resource "aws_route" "public" {
  region                 = var.region
  route_table_id         = aws_route_table.public.id
  destination_cidr_block = "0.0.0.0/0"
  gateway_id             = aws_internet_gateway.region.id
}

resource "aws_route_table_association" "public" {
  for_each = var.zones

  region         = var.region
  subnet_id      = aws_subnet.public[each.key].id
  route_table_id = aws_route_table.public.id
}

resource "aws_route_table" "private" {
  for_each = var.zones

  region = var.region
  vpc_id = aws_vpc.region.id
  tags   = { Name = "${local.name} private ${each.key}" }
}

resource "aws_route" "way_out" {
  for_each = var.zones

  region                 = var.region
  route_table_id         = aws_route_table.private[each.key].id
  destination_cidr_block = "0.0.0.0/0"
  nat_gateway_id         = aws_nat_gateway.region.id
}

resource "aws_route_table_association" "private" {
  for_each = var.zones

  region         = var.region
  subnet_id      = aws_subnet.private[each.key].id
  route_table_id = aws_route_table.private[each.key].id
}

resource "aws_security_group" "part" {
  for_each = toset(concat(["site", "app_manager"], length(local.members) > 0 ? ["etcd"] : []))

  region      = var.region
  name        = "${local.name}-${replace(each.key, "_", "-")}"
  description = "Machines of ${var.cluster} in ${var.region}: ${replace(each.key, "_", " ")}."
  vpc_id      = aws_vpc.region.id
}

resource "aws_vpc_security_group_ingress_rule" "rule" {
  for_each = local.rules

  region                       = var.region
  security_group_id            = aws_security_group.part[each.value[0].of].id
  description                  = join(" ", distinct(each.value[*].why))
  ip_protocol                  = each.value[0].protocol
  from_port                    = each.value[0].port
  to_port                      = each.value[0].port
  cidr_ipv4                    = each.value[0].group ? null : each.value[0].from
  referenced_security_group_id = each.value[0].group ? aws_security_group.part[each.value[0].from].id : null
}

resource "aws_vpc_security_group_egress_rule" "all" {
  for_each = aws_security_group.part

  region            = var.region
  security_group_id = each.value.id
  description       = "To other machines of the cluster, and to fetch the program and secrets."
  ip_protocol       = "-1"
  cidr_ipv4         = "0.0.0.0/0"
}
