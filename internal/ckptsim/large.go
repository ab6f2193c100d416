package ckptsim

import "fmt"

// LargeMetadata returns a .metadata of DCP for a model of so many tensors, each in a part on
// every rank, and the files that it names.
func LargeMetadata(tensors, ranks int) (data []byte, files []string) {
	items := make([][]dcpItem, ranks)
	for r := range ranks {
		files = append(files, fmt.Sprintf("__%d_0.distcp", r))
		for t := range tensors {
			items[r] = append(items[r], dcpItem{fqn: fmt.Sprintf("model.layers.%d.weight", t), value: tensor{}, offset: 1024 * t, length: 1024})
		}
	}
	items[0] = append(items[0], dcpItem{fqn: "step", value: int64(100), offset: 1024 * tensors, length: 1024})
	return dcpMetadata(files, items, "large"), files
}
