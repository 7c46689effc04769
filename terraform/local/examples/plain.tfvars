# Without TLS, on other ports, for tests of clients.
regions          = { one = { app_managers = 1 } }
tls              = false
site_port        = 17001
app_manager_port = 18080
