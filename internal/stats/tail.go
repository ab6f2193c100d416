// SPDX-License-Identifier: Apache-2.0

package stats

import "math"

// StudentTail returns P(T > t) for Student's t with nu degrees of freedom, t >= 0.
func StudentTail(t, nu float64) float64 {
	if !(t > 0) {
		return 0.5
	}
	if math.IsInf(t, 1) {
		return 0
	}
	return 0.5 * betaRegularised(nu/2, 0.5, nu/(nu+t*t))
}

// betaRegularised returns I_x(a, b) by Lentz's continued fraction.
func betaRegularised(a, b, x float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	front := math.Exp(lab - la - lb + a*math.Log(x) + b*math.Log1p(-x))
	if x < (a+1)/(a+b+2) {
		return front * betaFraction(a, b, x) / a
	}
	return 1 - front*betaFraction(b, a, 1-x)/b
}

func betaFraction(a, b, x float64) float64 {
	const tiny, enough, rounds = 1e-300, 1e-12, 300
	keep := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c, d := 1.0, 1/keep(1-(a+b)*x/(a+1))
	h := d
	for m := 1.0; m <= rounds; m++ {
		even := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		d = 1 / keep(1+even*d)
		c = keep(1 + even/c)
		h *= d * c
		odd := -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		d = 1 / keep(1+odd*d)
		c = keep(1 + odd/c)
		h *= d * c
		if math.Abs(d*c-1) < enough {
			break
		}
	}
	return h
}

// BinomialTail returns P(X >= k) for X ~ Binomial(n, p), at a cost that does not depend on n.
func BinomialTail(k, n int, p float64) float64 {
	switch {
	case k <= 0 || p >= 1:
		return 1
	case k > n || p <= 0:
		return 0
	}
	return betaRegularised(float64(k), float64(n-k+1), p)
}

// BinomialTailSum returns what BinomialTail does, as the sum of n-k+1 terms. It differs from it in
// the last digits.
func BinomialTailSum(k, n int, p float64) float64 {
	if k <= 0 {
		return 1
	}
	if p >= 1 {
		return 1
	}
	sum := 0.0
	for i := k; i <= n; i++ {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(i + 1))
		c, _ := math.Lgamma(float64(n - i + 1))
		sum += math.Exp(a - b - c + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return min(1, sum)
}
