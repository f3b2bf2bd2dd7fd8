# One cache line moved between each pair of CPUs, a panel a state; pairs without a number stay grey. In ns.
name = 'c2c'
format = ARG1
load 'c2c-vars.gp'
few = (cpus <= 8) # then the cells hold the numbers, and no colour scale is needed
columns = (few ? (panels < 4 ? panels : 4) : (panels < 2 ? panels : 2))
height = (few ? 1.15 + 5.0 / columns : 2.7 * ceil(1.0 * panels / columns))
if (height > 2.6 && few) height = 2.6
load 'common.gp'
set multiplot layout ceil(1.0 * panels / columns), columns
set palette maxcolors 24 defined (0 '#fff7ec', 0.35 '#fdbb84', 0.7 '#d7301f', 1 '#5b0000')
set border 0
unset grid
set cbrange [0:c_high]
set cblabel 'ns'
if (few) unset colorbox
set size square
set xrange [-0.5:cpus-0.5]
set yrange [cpus-0.5:-0.5]
set tics scale 0
set xlabel 'to CPU'
set ylabel 'from CPU'
set object rectangle from graph 0, graph 0 to graph 1, graph 1 behind fc rgb '#e0e0e0' fs solid noborder
load 'c2c-tics.gp'
do for [k=1:panels] {
  unset label
  load sprintf('c2c-labels-%d.gp', k)
  plot 'c2c.dat' index k-1 using 1:2:($1-0.5):($1+0.5):($2-0.5):($2+0.5):3 with boxxyerror lc palette
}
unset multiplot
