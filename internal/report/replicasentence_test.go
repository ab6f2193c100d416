// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

func TestReplicaSentences(t *testing.T) {
	for want, text := range map[string]string{
		"job j: epoch (mixed): replicas of group dp hold different parameters after step 300: from element 1000 of 5000 on, 000000000000000a on 7 ranks, 000000000000000b on 1 rank (3); told by 8 of 8 ranks; its GPU is GPU-3 (confidence 1.00)":                                  `{"group":"dp","step":300,"start":1000,"total":5000,"slices":1,"held":[{"value":"000000000000000a","count":7,"ranks":[0,1,2,4,5,6,7]},{"value":"000000000000000b","count":1,"ranks":[3]}],"hashes":2,"told":8,"replicas":8,"decided":true,"minority_gpus":["GPU-3"]}`,
		"job j: epoch (mixed): replicas of group dp hold different parameters after step 300: from element 0 of 5000 on, a on 1 rank (0), b on 1 rank (1), c on 1 rank (2), and 1 more value; told by 4 of 6 ranks; 3 slices differ; who is wrong is not decided (confidence 1.00)": `{"group":"dp","step":300,"total":5000,"slices":3,"held":[{"value":"a","count":1,"ranks":[0]},{"value":"b","count":1,"ranks":[1]},{"value":"c","count":1,"ranks":[2]},{"value":"d","count":1,"ranks":[3]}],"hashes":4,"told":4,"replicas":6}`,
		"job j: epoch (mixed) (confidence 1.00)": `{`,
	} {
		f := model.Finding{Kind: model.FindingEpoch, Class: model.ClassMixed, Op: model.OpFingerprint, JobID: "j", Confidence: 1, Evidence: evidence.Text(text)}
		assert.Equal(t, want, Sentence(&f))
	}
}
