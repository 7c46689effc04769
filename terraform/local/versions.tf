terraform {
  # Of OpenTofu, and without a provider: terraform_data is built in.
  required_version = ">= 1.8.0"
}
