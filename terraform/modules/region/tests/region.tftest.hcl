# What a region needs, by the names that the roots use.

variables {
  cluster     = "samya"
  region      = "europe-west2"
  addresses   = { europe-west2-1 = "10.64.32.10", europe-west2-2 = "10.64.32.11" }
  founders    = ["europe-west2-1", "europe-west2-2", "us-west1-1"]
  seeds       = ["10.64.32.10", "10.64.32.11", "10.64.0.10"]
  release     = { url = "https://example.com/samya", sha256 = "0000000000000000000000000000000000000000000000000000000000000000" }
  secrets     = { fetch = "printf %s \"$1\"" }
  data_device = "/dev/sdf"
}

run "sites_have_secrets_of_their_own" {
  command = plan

  assert {
    condition     = lookup(output.site_secrets["europe-west2-1"], "samya-tls-europe-west2-1", "") == "site.pem"
    error_message = "A site has its certificate."
  }
  assert {
    condition     = !contains(keys(output.site_secrets["europe-west2-1"]), "samya-tls-europe-west2-2")
    error_message = "A site does not see another one's key."
  }
  assert {
    condition     = length(setintersection(keys(output.app_manager_secrets), ["samya-tls-europe-west2-1", "samya-tls-europe-west2-2"])) == 0
    error_message = "App managers see no site's key."
  }
}

run "settings_are_flags" {
  command = plan

  variables {
    site_settings        = { request-retention = "10m", log-format = "text" }
    app_manager_settings = { repeat-time = "2m" }
  }

  assert {
    condition     = strcontains(output.site_files["europe-west2-1"]["/etc/systemd/system/samya.service"].content, " --request-retention=10m")
    error_message = "A setting of sites is a flag of theirs."
  }
  assert {
    condition     = strcontains(output.site_files["europe-west2-1"]["/etc/systemd/system/samya.service"].content, " --log-format=text")
    error_message = "A setting goes before what the module would choose."
  }
  assert {
    condition     = strcontains(output.app_manager_files["/etc/systemd/system/samya.service"].content, " --repeat-time=2m")
    error_message = "A setting of app managers is a flag of theirs."
  }
}

run "a_site_that_comes_later_joins" {
  command = plan

  variables {
    founders = ["europe-west2-1", "us-west1-1"]
  }

  assert {
    condition     = strcontains(output.site_files["europe-west2-1"]["/etc/systemd/system/samya.service"].content, " --members=europe-west2-1,us-west1-1")
    error_message = "A founder names all founders."
  }
  assert {
    condition     = !strcontains(output.site_files["europe-west2-2"]["/etc/systemd/system/samya.service"].content, " --members=")
    error_message = "A later site founds nothing."
  }
  assert {
    condition     = strcontains(output.site_files["europe-west2-2"]["/etc/systemd/system/samya.service"].content, " --join=10.64.32.10:7201,")
    error_message = "A later site asks others."
  }
}

run "security_is_no_setting" {
  command = plan

  variables {
    site_settings = { insecure = "true" }
  }

  expect_failures = [var.site_settings]
}

run "values_cannot_leave_their_word" {
  command = plan

  variables {
    app_manager_settings = { log-level = "info --insecure" }
  }

  expect_failures = [var.app_manager_settings]
}

run "programs_come_over_https" {
  command = plan

  variables {
    release = { url = "http://example.com/samya", sha256 = "0000000000000000000000000000000000000000000000000000000000000000" }
  }

  expect_failures = [var.release]
}

run "addresses_are_addresses" {
  command = plan

  variables {
    addresses = { europe-west2-1 = "somewhere" }
  }

  expect_failures = [var.addresses]
}
