# App managers: a group of machines that are all alike, behind a load balancer
# that hands connections on as they are. TLS ends in the app manager.

resource "aws_launch_template" "app_manager" {
  region                 = var.region
  name                   = "${local.name}-app-manager"
  description            = "App managers of ${var.cluster} in ${var.region}."
  image_id               = data.aws_ami.image.id
  instance_type          = var.app_manager_machine.type
  user_data              = base64gzip(module.needs.app_manager_user_data)
  vpc_security_group_ids = [aws_security_group.part["app_manager"].id]
  update_default_version = true

  iam_instance_profile {
    name = aws_iam_instance_profile.machine[local.app_managers].name
  }

  metadata_options {
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  tag_specifications {
    resource_type = "instance"
    tags          = { Name = "${var.cluster} app manager", cluster = var.cluster, part = "app-manager" }
  }
}

resource "aws_autoscaling_group" "app_manager" {
  region                    = var.region
  name                      = "${local.name}-app-manager"
  min_size                  = var.app_managers
  max_size                  = var.app_managers_max
  vpc_zone_identifier       = [for zone in local.zones : aws_subnet.private[zone].id]
  target_group_arns         = [for _, g in aws_lb_target_group.app_manager : g.arn]
  health_check_type         = "ELB"
  health_check_grace_period = 300

  launch_template {
    id      = aws_launch_template.app_manager.id
    version = aws_launch_template.app_manager.latest_version
  }

  instance_refresh {
    strategy = "Rolling"

    preferences {
      min_healthy_percentage = 100
      max_healthy_percentage = 200
    }
  }

  tag {
    key                 = "part"
    value               = "app-manager"
    propagate_at_launch = true
  }

  depends_on = [
    aws_iam_role_policy.read, aws_route.way_out, aws_route_table_association.private,
    aws_vpc_security_group_egress_rule.all, aws_vpc_security_group_ingress_rule.rule,
  ]
}

resource "aws_autoscaling_policy" "app_manager" {
  count = var.app_managers_max > var.app_managers ? 1 : 0

  region                 = var.region
  name                   = "${local.name}-app-manager"
  autoscaling_group_name = aws_autoscaling_group.app_manager.name
  policy_type            = "TargetTrackingScaling"

  target_tracking_configuration {
    target_value = 60

    predefined_metric_specification {
      predefined_metric_type = "ASGAverageCPUUtilization"
    }
  }
}

resource "aws_lb" "app_manager" {
  region                           = var.region
  name                             = "${substr(local.name, 0, 28)}-am"
  load_balancer_type               = "network"
  internal                         = !var.public
  subnets                          = [for zone in local.zones : var.public ? aws_subnet.public[zone].id : aws_subnet.private[zone].id]
  enable_cross_zone_load_balancing = true
}

resource "aws_lb_target_group" "app_manager" {
  for_each = module.needs.listeners

  region      = var.region
  name        = "${substr(local.name, 0, 26)}-${each.key}"
  vpc_id      = aws_vpc.region.id
  protocol    = "TCP"
  port        = each.value
  target_type = "instance"

  # By TCP: the checker has no certificate to show.
  health_check {
    protocol            = "TCP"
    port                = "traffic-port"
    interval            = 10
    healthy_threshold   = 2
    unhealthy_threshold = 2
  }
}

resource "aws_lb_listener" "app_manager" {
  for_each = module.needs.listeners

  region            = var.region
  load_balancer_arn = aws_lb.app_manager.arn
  protocol          = "TCP"
  port              = each.value

  default_action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.app_manager[each.key].arn
  }
}
