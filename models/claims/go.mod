module credfleet/models/claims

go 1.26
