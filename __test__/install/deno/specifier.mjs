import * as cofferdam from 'npm:cofferdam';
import { visit } from './visit.cjs';

await visit(cofferdam);
