# Private ways between the regions: one peering for each pair, and routes to it
# from both sides. Traffic stays within the cloud, encrypted on its way.

resource "aws_vpc_peering_connection" "pair" {
  for_each = local.pairs

  region      = each.value.from
  vpc_id      = module.region[each.value.from].network
  peer_vpc_id = module.region[each.value.to].network
  peer_region = each.value.to
  tags        = { Name = "${var.cluster} ${each.value.from} ${each.value.to}" }
}

resource "aws_vpc_peering_connection_accepter" "pair" {
  for_each = local.pairs

  region                    = each.value.to
  vpc_peering_connection_id = aws_vpc_peering_connection.pair[each.key].id
  auto_accept               = true
  tags                      = { Name = "${var.cluster} ${each.value.from} ${each.value.to}" }
}

locals {
  ways = merge([for key, p in local.pairs : merge(
    { for zone, _ in local.regions[p.from].zones : "${key}/${zone}" => { pair = key, region = p.from, zone = zone, to = p.to } },
    { for zone, _ in local.regions[p.to].zones : "${key}/${zone}" => { pair = key, region = p.to, zone = zone, to = p.from } },
  )]...)
}

resource "aws_route" "pair" {
  for_each = local.ways

  region                    = each.value.region
  route_table_id            = module.region[each.value.region].route_tables[each.value.zone]
  destination_cidr_block    = local.regions[each.value.to].cidr
  vpc_peering_connection_id = aws_vpc_peering_connection_accepter.pair[each.value.pair].id
}
