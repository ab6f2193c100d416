// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

const (
	// MaxSMI bounds the answer of nvidia-smi, bytes: some 30 KiB a GPU, and much more where each
	// runs thousands of processes.
	MaxSMI = 8 << 20
	// maxDepth bounds how deep elements lie within one another; nvidia-smi's do six deep.
	maxDepth = 32
	// maxGPUs bounds the GPUs of a node.
	maxGPUs = maxUnits
)

// smiName stands for the file in what is said of its content.
const smiName = "nvidia-smi -q -x"

// gpu is what is read of one GPU, by the name of the element.
type gpu map[string]string

// Elements of one GPU that are read.
const (
	smiUUID    = "uuid"
	smiProduct = "product_name"
	smiBoard   = "board_part_number"
	smiVBIOS   = "vbios_version"
	smiGSP     = "gsp_firmware_version"
)

var gpuFields = map[string]bool{smiUUID: true, smiProduct: true, smiBoard: true, smiVBIOS: true, smiGSP: true}

// Elements of the whole answer that are read.
const (
	smiRoot   = "nvidia_smi_log"
	smiDriver = "driver_version"
	smiCUDA   = "cuda_version"
	smiGPU    = "gpu"
)

// ParseSMI reads the versions in what nvidia-smi -q -x prints. The error says at which byte and in
// which element it is not what it should be.
func ParseSMI(answer []byte) (*Read, error) {
	if len(answer) > MaxSMI {
		return nil, fmt.Errorf("read %s: got %d bytes; want at most %d", smiName, len(answer), MaxSMI)
	}
	p := smiParser{dec: xml.NewDecoder(bytes.NewReader(answer)), top: map[string]string{}}
	if err := p.run(); err != nil {
		return nil, fmt.Errorf("read %s: byte %d: %s: %w", smiName, p.dec.InputOffset(), p.place(), err)
	}
	return p.read(), nil
}

type smiParser struct {
	dec  *xml.Decoder
	path []string
	text []byte // of the element that is read; nil where none is
	top  map[string]string
	gpus []gpu
	left int
	done bool
}

// place names the element that is open, and the GPU.
func (p *smiParser) place() string {
	if len(p.path) == 0 {
		return "top"
	}
	path := strings.Join(p.path, ".")
	if len(p.path) > 1 && p.path[1] == smiGPU {
		path = strings.Replace(path, "."+smiGPU, fmt.Sprintf(".%s[%d]", smiGPU, len(p.gpus)+p.left-1), 1)
	}
	return path
}

func (p *smiParser) run() error {
	for {
		t, err := p.dec.Token()
		if errors.Is(err, io.EOF) {
			if !p.done {
				return fmt.Errorf("got the end of the answer; want the end of %s", smiRoot)
			}
			return nil
		}
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.StartElement:
			err = p.start(t.Name.Local)
		case xml.EndElement:
			err = p.end()
		case xml.CharData:
			err = p.chars(t)
		}
		if err != nil {
			return err
		}
	}
}

func (p *smiParser) start(name string) error {
	switch {
	case p.done:
		return fmt.Errorf("got %.40q behind the end; want nothing", name)
	case len(p.path) == 0 && name != smiRoot:
		return fmt.Errorf("got %.40q; want %s", name, smiRoot)
	case len(p.path) >= maxDepth:
		return fmt.Errorf("got elements more than %d deep; want at most that", maxDepth)
	case len(name) > maxText:
		return fmt.Errorf("got a name of %d bytes; want at most %d", len(name), maxText)
	case p.text != nil:
		return fmt.Errorf("got element %.40q; want text", name)
	}
	p.path = append(p.path, name)
	switch len(p.path) {
	case 2:
		switch {
		case name == smiDriver, name == smiCUDA:
			p.text = []byte{}
		case name != smiGPU:
		case len(p.gpus) >= maxGPUs:
			p.left++
		default:
			p.gpus = append(p.gpus, gpu{})
		}
	case 3:
		if p.path[1] == smiGPU && gpuFields[name] {
			p.text = []byte{}
		}
	}
	return nil
}

func (p *smiParser) chars(b []byte) error {
	if p.text == nil {
		return nil
	}
	if n := len(p.text) + len(b); n > maxText {
		return fmt.Errorf("got %d bytes; want at most %d", n, maxText)
	}
	p.text = append(p.text, b...)
	return nil
}

func (p *smiParser) end() error {
	if p.text != nil {
		v, err := text(string(p.text))
		if err != nil {
			return err
		}
		to := p.top
		if len(p.path) == 3 {
			to = nil
			if p.left == 0 {
				to = p.gpus[len(p.gpus)-1]
			}
		}
		name := p.path[len(p.path)-1]
		if to != nil && to[name] == "" {
			to[name] = v
		}
		p.text = nil
	}
	p.path = p.path[:len(p.path)-1]
	p.done = len(p.path) == 0
	return nil
}

// read makes versions of what was found. That of the driver is the kernel module's, since it is
// asked: NVML answers only where its libraries are of that version, too.
func (p *smiParser) read() *Read {
	r := &Read{LeftOut: p.left}
	witness := func(name string) string { return smiName + " " + name }
	if v := p.top[smiDriver]; v != "" {
		r.add(Version{Domain: model.VersionKernelDriver, Version: v, Witness: witness(smiDriver)})
		r.add(Version{Domain: model.VersionUserDriver, Version: v, Witness: witness(smiDriver)})
	}
	r.add(Version{Domain: model.VersionCUDA, Version: p.top[smiCUDA], Witness: witness(smiCUDA)})
	for i, g := range p.gpus {
		unit := g[smiUUID]
		if unit == "" {
			unit = fmt.Sprintf("gpu %d", i)
		}
		board := strings.TrimSpace(g[smiProduct] + " " + g[smiBoard])
		r.add(Version{Domain: model.VersionVBIOS, Unit: unit, Model: board, Version: g[smiVBIOS], Witness: witness(smiVBIOS)})
		r.add(Version{Domain: model.VersionGSP, Unit: unit, Model: board, Version: g[smiGSP], Witness: witness(smiGSP)})
	}
	return r
}
