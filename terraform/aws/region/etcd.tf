# The etcd of sites of several nodes: three members in zones of their own if there are
# three. A member keeps disk and address when its machine is made anew, and so its place.

resource "aws_network_interface" "etcd" {
  for_each = local.members

  region          = var.region
  description     = "Member ${each.key} of etcd of ${var.cluster}."
  subnet_id       = aws_subnet.private[each.value.zone].id
  private_ips     = [each.value.address]
  security_groups = [aws_security_group.part["etcd"].id]
  tags            = { Name = "${var.cluster} ${each.key}" }
}

resource "aws_ebs_volume" "etcd" {
  for_each = local.members

  region            = var.region
  availability_zone = each.value.zone
  type              = var.etcd.machine.disk_type
  size              = var.etcd.machine.disk_size
  encrypted         = true
  tags              = { Name = "${var.cluster} ${each.key}" }

  lifecycle {
    # A majority of these disks holds the books of sites.
    prevent_destroy = var.protect_data
  }
}

resource "aws_instance" "etcd" {
  for_each = local.members

  region               = var.region
  ami                  = data.aws_ami.image.id
  instance_type        = var.etcd.machine.type
  iam_instance_profile = aws_iam_instance_profile.machine[each.key].name
  # Over 16 KB when it is not compressed.
  user_data_base64 = base64gzip(module.needs.etcd_user_data[each.key])
  tags             = { Name = "${var.cluster} ${each.key}", part = "etcd" }

  primary_network_interface {
    network_interface_id = aws_network_interface.etcd[each.key].id
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
    # start alone. Members get both by a new machine, one after the other:
    # terraform/README.md.
    ignore_changes = [ami, user_data_base64]
  }

  depends_on = [
    aws_iam_role_policy.read, aws_route.way_out, aws_route_table_association.private,
    aws_vpc_security_group_egress_rule.all, aws_vpc_security_group_ingress_rule.rule,
  ]
}

resource "aws_volume_attachment" "etcd" {
  for_each = local.members

  region      = var.region
  device_name = "/dev/sdf"
  volume_id   = aws_ebs_volume.etcd[each.key].id
  instance_id = aws_instance.etcd[each.key].id
  # So that etcd has closed its log.
  stop_instance_before_detaching = true
}
