module example.com/house

go 1.26.0

require example.com/direct v1.0.0

require example.com/indirect v1.0.0 // indirect
