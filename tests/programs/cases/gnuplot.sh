#!/bin/sh
# curves and a surface as SVG
# needs: gnuplot
# size: short
gnuplot <<'G'
set terminal svg size 800,600
set output "a.svg"
plot for [i = 1:200] sin(x * i / 50.0) * i notitle
set output "b.svg"
set dgrid3d 30, 30
splot "<head -n 2000 $LINES_FILE" using 1:2:($1 % 100) with lines
set output
G
cksum <a.svg && cksum <b.svg
