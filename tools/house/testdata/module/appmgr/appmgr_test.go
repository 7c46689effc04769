package appmgr

import other "example.com/house/site"

func use() { other.Tested() }
