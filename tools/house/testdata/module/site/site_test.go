package site_test

import "example.com/house/site"

func use() { site.Unused() }
