# Three regions, the middle one with two sites, and one that serves clients alone.
regions = {
  us = { app_managers = 3 }
  eu = { sites = 2 }
  as = { app_managers = 1 }
  sa = { sites = 0, app_managers = 1 }
}
site_settings = {
  "request-retention" = "10m"
  "log-level"         = "warn"
}
app_manager_settings = { "repeat-time" = "2m" }
