# Sites: each, and each further node of a site, has a machine, a disk and an address of
# its own. The disk and the address stay when the machine is made anew.

resource "aws_network_interface" "site" {
  for_each = var.sites

  region          = var.region
  description     = "Site ${each.key} of ${var.cluster}."
  subnet_id       = aws_subnet.private[each.value.zone].id
  private_ips     = [each.value.address]
  security_groups = [aws_security_group.part["site"].id]
  tags            = { Name = "${var.cluster} ${each.key}" }
}

resource "aws_ebs_volume" "site" {
  for_each = var.sites

  region            = var.region
  availability_zone = each.value.zone
  type              = var.site_machine.disk_type
  size              = var.site_machine.disk_size
  encrypted         = true
  tags              = { Name = "${var.cluster} ${each.key}" }

  lifecycle {
    # It holds the books: what is on it cannot be told from other sites.
    prevent_destroy = var.protect_data
  }
}

resource "aws_instance" "site" {
  for_each = var.sites

  region               = var.region
  ami                  = data.aws_ami.image.id
  instance_type        = var.site_machine.type
  iam_instance_profile = aws_iam_instance_profile.machine[each.value.site].name
  # Over 16 KB when it is not compressed.
  user_data_base64 = base64gzip(module.needs.site_user_data[each.key])
  tags             = { Name = "${var.cluster} ${each.key}", part = "site" }

  primary_network_interface {
    network_interface_id = aws_network_interface.site[each.key].id
  }

  root_block_device {
    volume_type = "gp3"
    volume_size = 20
    encrypted   = true
  }

  metadata_options {
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  lifecycle {
    # A newer image is for new machines, and user data is read at a machine's first
    # start alone. Sites get both by a new machine, one site after the other:
    # docs/deploy-aws.md.
    ignore_changes = [ami, user_data_base64]
  }

  depends_on = [
    aws_iam_role_policy.read, aws_route.way_out, aws_route_table_association.private,
    aws_vpc_security_group_egress_rule.all, aws_vpc_security_group_ingress_rule.rule,
  ]
}

resource "aws_volume_attachment" "site" {
  for_each = var.sites

  region      = var.region
  device_name = "/dev/sdf"
  volume_id   = aws_ebs_volume.site[each.key].id
  instance_id = aws_instance.site[each.key].id
  # So that samya has closed its log.
  stop_instance_before_detaching = true
}
