package capability

func Document() string { return "" }
