# One region for each of the paper's five, one site in each.
release = {
  url    = "https://example.com/samya/1.0.0/samya-linux-amd64"
  sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
}
regions = {
  us-west-2      = { network = 0, app_managers = 3, app_managers_max = 6 }
  ap-east-1      = { network = 1 }
  eu-west-2      = { network = 2 }
  ap-southeast-2 = { network = 3 }
  sa-east-1      = { network = 4, zones = ["a", "c"] }
}
client_cidrs = ["10.0.0.0/16"]
