# One region with a site in each of three zones, and app managers for the public.
project = "my-project"
release = {
  url    = "https://example.com/samya/1.0.0/samya-linux-amd64"
  sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
}
regions = {
  europe-west2 = { network = 0, sites = 3, app_managers = 3 }
}
public           = true
client_cidrs     = ["0.0.0.0/0"]
monitoring_cidrs = ["10.64.0.0/20"]
