# One region with a site in each of three zones, and app managers for the public.
release = {
  url    = "https://example.com/samya/1.0.0/samya-linux-amd64"
  sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
}
regions = {
  eu-west-2 = { network = 0, sites = 3, app_managers = 3 }
}
public           = true
client_cidrs     = ["0.0.0.0/0"]
monitoring_cidrs = ["10.64.0.0/20"]
alarm_actions    = { eu-west-2 = ["arn:aws:sns:eu-west-2:111122223333:samya"] }
