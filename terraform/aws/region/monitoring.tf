# What the cloud itself sees of the machines. samya's own metrics are read by
# Prometheus, whose targets are an output.

resource "aws_cloudwatch_metric_alarm" "site" {
  for_each = var.sites

  region              = var.region
  alarm_name          = "${var.cluster} ${each.key}: the machine does not answer"
  alarm_description   = "What it holds stays on its disk. Apply the configuration again: a new machine takes the disk, the name and the address."
  namespace           = "AWS/EC2"
  metric_name         = "StatusCheckFailed"
  dimensions          = { InstanceId = aws_instance.site[each.key].id }
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 5
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "breaching"
  alarm_actions       = var.alarm_actions
  ok_actions          = var.alarm_actions
}

resource "aws_cloudwatch_metric_alarm" "etcd" {
  for_each = local.members

  region              = var.region
  alarm_name          = "${var.cluster} ${each.key}: the machine does not answer"
  alarm_description   = "Sites go on while two members of etcd are left. Apply the configuration again: a new machine takes the disk, the name and the address."
  namespace           = "AWS/EC2"
  metric_name         = "StatusCheckFailed"
  dimensions          = { InstanceId = aws_instance.etcd[each.key].id }
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 5
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "breaching"
  alarm_actions       = var.alarm_actions
  ok_actions          = var.alarm_actions
}

resource "aws_cloudwatch_metric_alarm" "app_managers" {
  for_each = var.app_managers > 0 ? aws_lb_target_group.app_manager : {}

  region              = var.region
  alarm_name          = "${local.name}: app managers do not serve ${each.key}"
  namespace           = "AWS/NetworkELB"
  metric_name         = "HealthyHostCount"
  dimensions          = { LoadBalancer = aws_lb.app_manager.arn_suffix, TargetGroup = each.value.arn_suffix }
  statistic           = "Minimum"
  period              = 60
  evaluation_periods  = 10
  comparison_operator = "LessThanThreshold"
  threshold           = var.app_managers
  treat_missing_data  = "breaching"
  alarm_actions       = var.alarm_actions
  ok_actions          = var.alarm_actions
}

resource "aws_cloudwatch_dashboard" "machines" {
  region         = var.region
  dashboard_name = local.name
  dashboard_body = jsonencode({
    widgets = [
      {
        type = "metric", x = 0, y = 0, width = 12, height = 6
        properties = {
          title   = "Processors of sites", region = var.region, stat = "Average", period = 60
          metrics = [for name in sort(keys(var.sites)) : ["AWS/EC2", "CPUUtilization", "InstanceId", aws_instance.site[name].id, { label = name }]]
        }
      },
      {
        type = "metric", x = 12, y = 0, width = 12, height = 6
        properties = {
          title   = "Writes to the disks of sites", region = var.region, stat = "Sum", period = 60
          metrics = [for name in sort(keys(var.sites)) : ["AWS/EBS", "VolumeWriteOps", "VolumeId", aws_ebs_volume.site[name].id, { label = name }]]
        }
      },
      {
        type = "metric", x = 0, y = 6, width = 12, height = 6
        properties = {
          title   = "Processors of app managers", region = var.region, stat = "Average", period = 60
          metrics = [["AWS/EC2", "CPUUtilization", "AutoScalingGroupName", aws_autoscaling_group.app_manager.name]]
        }
      },
      {
        type = "metric", x = 12, y = 6, width = 12, height = 6
        properties = {
          title   = "Connections of clients", region = var.region, stat = "Sum", period = 60
          metrics = [["AWS/NetworkELB", "NewFlowCount", "LoadBalancer", aws_lb.app_manager.arn_suffix]]
        }
      },
    ]
  })
}
