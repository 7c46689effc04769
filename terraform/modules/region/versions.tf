terraform {
  # It has no resources of its own, and so no provider.
  required_version = ">= 1.8.0"
}
