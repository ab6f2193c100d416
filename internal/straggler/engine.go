package straggler
