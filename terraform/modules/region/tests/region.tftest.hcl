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

run "nodes_are_of_one_site" {
  command = plan

  variables {
    addresses = { europe-west2-1 = "10.64.32.10", europe-west2-1-b = "10.64.32.30", europe-west2-2 = "10.64.32.11" }
    nodes = {
      europe-west2-1   = { site = "europe-west2-1", node = "a" }
      europe-west2-1-b = { site = "europe-west2-1", node = "b" }
    }
    etcd = {
      endpoints = ["10.64.47.252:2379"]
      members   = { etcd-europe-west2-1 = "10.64.47.252" }
      release   = { url = "https://example.com/etcd", sha256 = "1111111111111111111111111111111111111111111111111111111111111111" }
    }
  }

  assert {
    condition     = join(",", keys(output.site_secrets)) == "europe-west2-1,europe-west2-2"
    error_message = "Nodes share the secrets of their site."
  }
  assert {
    condition     = lookup(output.site_secrets["europe-west2-1"], "samya-tls-europe-west2-1-etcd", "") == "etcd.pem" && lookup(output.site_secrets["europe-west2-1"], "samya-etcd-ca", "") == "etcd-ca.pem"
    error_message = "A site of nodes has a certificate for etcd."
  }
  assert {
    condition     = length([for id, _ in output.site_secrets["europe-west2-2"] : id if strcontains(id, "etcd")]) == 0
    error_message = "A site on a disk has nothing of etcd."
  }
  assert {
    condition     = length([for id, _ in output.app_manager_secrets : id if strcontains(id, "etcd")]) == 0
    error_message = "App managers have nothing of etcd."
  }
  assert {
    condition     = join(",", keys(output.etcd_secrets["etcd-europe-west2-1"])) == "samya-etcd-ca,samya-tls-etcd-europe-west2-1"
    error_message = "A member of etcd has its own certificate, and nothing of samya."
  }
  assert {
    condition     = output.site_files["europe-west2-1-b"]["/etc/samya-node"].content == "NAME=europe-west2-1\nADDRESS=10.64.32.30\nNODE=b\nAWAIT=true\n"
    error_message = "A further node has the site's name, and waits for its log."
  }
  assert {
    condition     = strcontains(output.site_files["europe-west2-1"]["/etc/samya-node"].content, "NODE=a\nAWAIT=false\n")
    error_message = "The first node begins the log."
  }
  assert {
    condition     = strcontains(output.site_files["europe-west2-1-b"]["/etc/systemd/system/samya.service"].content, " --members=europe-west2-1,")
    error_message = "All nodes of a founder name the founders."
  }
  assert {
    condition     = !strcontains(output.site_files["europe-west2-1-b"]["/etc/systemd/system/samya.service"].content, "--etcd-keep-history")
    error_message = "The nodes compact an etcd of their own."
  }
  assert {
    condition     = !strcontains(output.site_files["europe-west2-2"]["/etc/systemd/system/samya.service"].content, "etcd")
    error_message = "A site on a disk knows nothing of etcd."
  }
}

run "others_may_run_etcd" {
  command = plan

  variables {
    addresses = { europe-west2-1 = "10.64.32.10", europe-west2-1-b = "10.64.32.30", europe-west2-2 = "10.64.32.11" }
    nodes = {
      europe-west2-1   = { site = "europe-west2-1", node = "a" }
      europe-west2-1-b = { site = "europe-west2-1", node = "b" }
    }
    etcd = { endpoints = ["etcd.example.com:2379"] }
  }

  assert {
    condition     = strcontains(output.site_files["europe-west2-1"]["/etc/systemd/system/samya.service"].content, " --etcd-endpoints=etcd.example.com:2379") && strcontains(output.site_files["europe-west2-1"]["/etc/systemd/system/samya.service"].content, " --etcd-keep-history=true")
    error_message = "Nodes leave the history of another one's etcd alone."
  }
  assert {
    condition     = length(output.etcd_files) == 0 && length([for name, _ in output.firewall : name if strcontains(name, "etcd")]) == 0
    error_message = "There is no etcd to be made."
  }
}

run "nodes_need_an_etcd" {
  command = plan

  variables {
    addresses = { europe-west2-1 = "10.64.32.10", europe-west2-1-b = "10.64.32.30", europe-west2-2 = "10.64.32.11" }
    nodes = {
      europe-west2-1   = { site = "europe-west2-1", node = "a" }
      europe-west2-1-b = { site = "europe-west2-1", node = "b" }
    }
  }

  expect_failures = [var.nodes]
}

run "the_log_is_no_setting" {
  command = plan

  variables {
    site_settings = { log = "etcd" }
  }

  expect_failures = [var.site_settings]
}
