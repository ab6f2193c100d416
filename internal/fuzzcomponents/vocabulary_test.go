// SPDX-License-Identifier: Apache-2.0

package fuzzcomponents

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// names are all strings that package semconv declares: attributes, events and values.
var names = sync.OnceValue(func() []string {
	list, err := constants(filepath.Join("..", "semconv"))
	if err != nil {
		panic(err)
	}
	return list
})

func constants(dir string) (list []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse names of attributes: %w", err)
		}
		for _, d := range parsed.Decls {
			if decl, ok := d.(*ast.GenDecl); ok && decl.Tok == token.CONST {
				ast.Inspect(decl, func(n ast.Node) bool {
					if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
						if text, err := strconv.Unquote(lit.Value); err == nil {
							list = append(list, text)
						}
					}
					return true
				})
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

var events = []string{
	semconv.EventFinding, semconv.EventOpOpen, semconv.EventRankState, semconv.EventRankAbsent, semconv.EventRankMembers,
	semconv.EventRankResumed, semconv.EventRankFingerprint, semconv.EventClockEdge, semconv.EventClockModel,
	semconv.EventEpochObservation, semconv.EventHostFact, "",
}

// texts are values that mean something to a reader, and some that no reader expects.
var texts = []string{
	"", "0", "-1", "job", "other job", "inc", "all", "*", "a\x00b", "\xff\xfe", "\u202e", "{", `{"held":[]}`, `[[1,2],[3]]`, "null", "1e999",
	strings.Repeat("x", 300), strings.Repeat("ü", 5000),
	string(model.KindCompute), string(model.KindCollective), string(model.KindSend), string(model.KindRecv), string(model.KindCopy),
	string(model.KindHost), string(model.KindScope), string(model.KindStep),
	model.AllReduce, model.AllGather, model.AllToAll, model.SendRecv, model.Barrier, model.OpOther,
	string(model.ScopeCommFunc), string(model.ScopeComm), string(model.ScopeProcess), string(model.ScopeOrdinal),
	model.StatusOpen, model.StatusUpdated, model.StatusClosed, "scheduled", "started", "completed",
	model.FindingStraggler, model.FindingDesync, model.FindingClock, model.FindingEpoch, model.ClassMixed, model.ClassCompute, model.ClassNotScheduled,
	model.EdgeProbe, model.EdgePair, model.EdgeMessage, model.EdgeChrony, model.StampKernel, "host:node0/boot/raw", "host:node1/boot/raw", "host:node0/boot/realtime",
	string(model.DomainTentative), string(model.DomainCommitted), string(model.DomainAbsent), string(model.DomainWithdrawn),
	string(model.DomainPlace), string(model.DomainTracker), string(model.DomainModel), "rank 0", "2 ranks",
	string(model.VersionKernelDriver), string(model.VersionVBIOS), "550.54.14", "NCCL version 2.26.2+cuda12.4", "train", "checkpoint", "init",
}
