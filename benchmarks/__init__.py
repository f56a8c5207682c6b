"""Ratios against peers, all in one run; not part of the installed package.

python -m benchmarks                 speed: coder, dictionary learning, dense SIFT, images per second (`make bench`)
python -m benchmarks.memory          peak memory on Caltech 101 against 3,030 atoms
python -m benchmarks.recognition     accuracy and time on MNIST or Extended Yale B
"""
