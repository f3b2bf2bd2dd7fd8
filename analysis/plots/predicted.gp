# Predicted against measured for cells that were left out of the fit, and the errors by threads: a row a world.
name = 'predicted'
format = ARG1
load 'predicted-vars.gp'
height = 2.9 * worlds + 0.3
load 'common.gp'
load 'predicted-colours.gp'
set multiplot
row = 0.9 / worlds
do for [w=1:worlds] {
  load sprintf('predicted-axes-%d.gp', w)
  top = 0.97 - (w - 1) * row
  unset label
  unset logscale
  set logscale xy
  set tmargin at screen top - 0.035
  set bmargin at screen top - row + 0.075 / worlds + 0.04
  set lmargin at screen 0.085
  set rmargin at screen 0.40
  set xrange [low:high]
  set yrange [low:high]
  set xtics auto
  set ytics auto
  set grid xtics ytics
  set title world
  set xlabel sprintf('measured, %ss an operation', unit)
  set ylabel 'predicted'
  set key on top left Left reverse samplen 1
  plot x with lines lc rgb '#909090' lw 1 notitle, \
       for [k=1:kinds] 'predicted.dat' index (w-1)*kinds+k-1 using 1:2:5 with points pt 3 + 2*k ps 0.5 lc rgb variable notitle, \
       for [k=1:kinds] NaN with points pt 3 + 2*k ps 0.6 lc rgb '#202020' title kind[k]
  unset logscale
  load sprintf('predicted-axes-%d.gp', w)
  set logscale x 2
  set lmargin at screen 0.50
  set rmargin at screen 0.83
  set xrange [n_low:n_high]
  set yrange [-spread:spread]
  set xlabel 'threads'
  set ylabel 'error, %'
  set title ''
  set key off
  set object 1 rectangle from n_low, -contended to n_high, contended behind fc rgb SHADE fs solid noborder
  set object 2 rectangle from n_low, -single to sqrt(2), single behind fc rgb '#dddacf' fs solid noborder
  do for [a=1:colours] {
    set label a name_of[a] at graph 1.06, graph 1.0 - 0.085 * (a - 0.5) left front textcolor rgb colour_of[a]
  }
  plot 0 with lines lc rgb '#909090' lw 1 notitle, \
       for [k=1:kinds] 'predicted.dat' index (w-1)*kinds+k-1 using 3:($4 > spread ? spread : $4 < -spread ? -spread : $4):5 \
       with points pt 3 + 2*k ps 0.5 lc rgb variable notitle
  unset object
}
unset multiplot
