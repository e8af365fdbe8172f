package packages

import "testing"

func TestTheMostSpecificWheelIsChosen(t *testing.T) {
	// Each list has the best one first.
	for _, files := range [][]string{
		{
			"charset_normalizer-3.5.2-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.manylinux_2_28_x86_64.whl",
			"charset_normalizer-3.5.2-cp37-abi3-manylinux1_x86_64.manylinux_2_28_x86_64.manylinux_2_5_x86_64.whl",
			"charset_normalizer-3.5.2-py3-none-any.whl",
		},
		{
			"cryptography-50.0.2-cp311-abi3-manylinux_2_34_x86_64.whl",
			"cryptography-50.0.2-cp311-abi3-manylinux_2_28_x86_64.whl",
			"cryptography-50.0.2-cp311-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
			"cryptography-50.0.2-cp39-abi3-manylinux_2_34_x86_64.whl",
		},
		{"x-1-py3-none-manylinux_2_5_x86_64.whl", "x-1-py3-none-linux_x86_64.whl", "x-1-py3-none-any.whl"},
		{"x-1-10-py3-none-any.whl", "x-1-2-py3-none-any.whl", "x-1-py3-none-any.whl"},
		{
			"x-1-cp312-none-manylinux_2_5_x86_64.whl", "x-1-py3-none-manylinux_2_17_x86_64.whl",
			"x-1-cp312-none-any.whl", "x-1-py312-none-any.whl",
		},
		{"x-1-cp311-abi3-any.whl", "x-1-cp311-none-any.whl", "x.whl"},
		{"x-1-py3-none-manylinux_2_17_x86_64.whl", "x-1-py3-none-manylinux_2_5_x86_64.whl"},
		{"x-1-py3-none-manylinux2014_x86_64.whl", "x-1-py3-none-manylinux_2_5_x86_64.whl"},
		{"x-1-py3-none-linux_x86_64.whl", "x-1-1-py3-none-any.whl"},
	} {
		var wheels []lockedWheel
		for i := range files {
			wheels = append(wheels, lockedWheel{Name: files[len(files)-1-i]})
		}
		l := &Lock{packages: []lockedPackage{{Wheels: wheels}}}
		l.choose()
		if got := l.packages[0].Wheels[0].Name; got != files[0] {
			t.Errorf("got %s, want %s", got, files[0])
		}
		for i := range files[1:] {
			if compareTags(files[i], files[i+1]) <= 0 {
				t.Errorf("%s is not above %s", files[i], files[i+1])
			}
		}
	}
}
